"""Options of existing tables that fit neither their type nor their table: set by other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.options import TableOptions

OPERATIONS: dict[str, Callable[[lake.Table], object]] = {
    "read": lambda table: table.scan().to_arrow(),
    "written": lambda table: table.write(pa.table({"id": [9], "v": [9]})),
    "compacted": lambda table: table.compact(strategy="full"),
    "expired": lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
    "tagged": lambda table: table.tags.create("a"),
}


@pytest.fixture
def with_options(catalog, tmp_path: Path) -> Callable[..., lake.Table]:
    """A keyed table of three commits, to which another program has given options."""
    catalog.create_table(
        "shop.t", [("id", "BIGINT"), ("v", "BIGINT")], primary_key=["id"], options={"bucket": "2"}
    )
    for row in range(3):
        catalog.table("shop.t").write(pa.table({"id": [1], "v": [row]}))

    def make(**options: str) -> lake.Table:
        path = tmp_path / "shop.db/t/schema/schema-0"
        schema = json.loads(path.read_text())
        schema["options"] |= {key.replace("__", "."): value for key, value in options.items()}
        path.write_text(json.dumps(schema))
        return catalog.table("shop.t")

    return make


@pytest.mark.parametrize("name", ["gone", "v,gone", "V"])
@pytest.mark.parametrize("done", ["read", "written", "compacted"])
def test_a_sequence_field_that_is_no_column_is_named_with_the_columns(with_options, done, name):
    table = with_options(sequence__field=name)
    wanted = (
        rf"'sequence\.field' names '{name.rpartition(',')[2]}', which is not a column; .* id, v"
    )
    with pytest.raises(lake.InvalidRequestError, match=wanted):
        OPERATIONS[done](table)
    assert table.latest_snapshot().id == 3


@pytest.mark.parametrize("name", ["gone", " id"])
def test_a_bucket_key_that_is_no_column_refuses_writes_and_no_reads(with_options, name):
    table = with_options(**{"bucket-key": name})
    why = "but the table has no such column; choose from the columns id"
    wanted = rf"'bucket-key' names '{name}', {why}"
    with pytest.raises(lake.InvalidRequestError, match=wanted):
        OPERATIONS["written"](table)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": 2}]
    assert table.latest_snapshot().id == 3


def test_a_target_of_no_bytes_is_compacted(with_options):
    table = with_options(**{"target-file-size": "0"})
    table.compact(strategy="full")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": 2}]


@pytest.mark.parametrize(
    ("done", "key", "value"),
    [
        ("written", "write-only", "yes"),
        ("compacted", "num-levels", "many"),
        ("expired", "file-operation.thread-num", "0"),
        ("tagged", "tag.default-time-retained", "PT1H"),
    ],
)
def test_a_refused_value_is_said_with_the_table_the_reason_and_the_next_step(
    with_options, done, key, value
):
    table = with_options(**{key: value})
    with pytest.raises(lake.InvalidRequestError) as refused:
        OPERATIONS[done](table)
    said = str(refused.value)
    assert said.startswith(
        f"{table._handle.uri} cannot be {done}: option {key!r} is {value!r}, but must"
    )
    assert "Set the option to a valid value, or remove it; if that is refused, use" in said
    assert said.endswith("Nothing was changed")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("snapshot.num-retained.max", "5.0"),
        ("snapshot.num-retained.max", "1_000"),
        ("bucket", "four"),
        ("compaction.delete-ratio-threshold", "few"),
        ("data-file.external-paths.weights", "1,x"),
    ],
)
def test_a_refusal_of_a_number_speaks_no_python(key, value):
    with pytest.raises(lake.InvalidRequestError, match=r"it is not a (whole )?number$"):
        TableOptions({key: value}).check_values()


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("changelog-file.format", "must be parquet or orc or avro, or empty: this version"),
        ("lake.orc-writer-timezone", "'UTC' or 'Europe/Berlin', or empty: there is no such"),
        ("changelog-file.stats-mode", r"truncate\(n\) or full, or empty: n is a whole number"),
        ("write-buffer-spill.max-disk-size", "size such as '128 mb', or empty: write a whole"),
        ("num-levels", "from 1 to 1000000, or empty: it is not a whole number"),
    ],
)
def test_an_option_that_may_be_empty_is_refused_in_one_sentence(key, wanted):
    assert TableOptions({key: ""}).check_values() is None
    with pytest.raises(lake.InvalidRequestError, match=wanted):
        TableOptions({key: "some"}).check_values()


@pytest.mark.parametrize(
    "text", ["3600000000 µs", "3600000000 micros", "3600000000000ns", "3600000999999 nanos"]
)
def test_durations_have_all_units_of_java(text):
    assert TableOptions({"snapshot.time-retained": text}).snapshot_time_retained_millis == 3_600_000
