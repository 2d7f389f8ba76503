"""Tables whose compactions look up rows or write a changelog, through the table's own calls."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.paimon.compact.vectors import VectorChange, write_vectors
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import find_deleted_rows, find_vectors
from lakeformat.paimon.read.plan import plan_files

LOOKUP = {"changelog-producer": "lookup"}
FULL = {"changelog-producer": "full-compaction"}
VECTORS = {"deletion-vectors.enabled": "true"}
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
COLUMNS = [("k", "INT"), ("v", "INT")]
_warehouses = itertools.count()


def new_table(
    options: dict[str, str],
    warehouse: str | None = None,
    columns: Sequence[tuple[str, str]] = COLUMNS,
) -> lake.Table:
    catalog = lake.open_catalog(warehouse or f"memory://changelog-{next(_warehouses)}/wh")
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.t",
        columns,
        primary_key=["k"],
        options={"bucket": "1", **options},
    )


def write(table: lake.Table, *rows: Sequence[Any]) -> None:
    """Rows such as ``("+I", 1, 10)``."""
    kinds, keys, values = zip(*rows, strict=True)
    table.write(
        pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())}), kinds
    )


def compact(table: lake.Table, strategy: str = "minor") -> list[tuple[Any, ...]]:
    """The changelog of the compaction."""
    report = table.compact(strategy=strategy, executor="serial")
    if table.options.changelog_producer == "none":
        return []
    told = [table.changes(n - 1, n, "changelog").to_arrow() for n in report.snapshot_ids]
    return [tuple(row.values()) for rows in told for row in rows.to_pylist()]


def state(table: lake.Table) -> dict[int, int | None]:
    return {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def files(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return list(plan_files(table._handle, snapshot))


def levels(table: lake.Table) -> list[int]:
    return sorted(entry.file.level for entry in files(table))


def two_levels(options: dict[str, str], rows: int = 1000) -> lake.Table:
    """A table with so many rows on its highest level that a few new ones remain below it."""
    table = new_table(options)
    write(table, *(("+I", key, key) for key in range(rows)))
    compact(table, "full")
    return table


@pytest.mark.parametrize("options", [LOOKUP, {**LOOKUP, **VECTORS}], ids=["merged", "marked"])
def test_rows_above_the_output_are_looked_up_and_not_written_again(options: dict[str, str]):
    table = two_levels(options)
    [top] = files(table)
    write(table, ("+U", 5, -5), ("-D", 7, 0), ("+I", 2000, 1))
    assert compact(table) == [("-U", 5, 5), ("+U", 5, -5), ("-D", 7, 7), ("+I", 2000, 1)]
    assert levels(table) == [4, 5]
    assert top.file in [entry.file for entry in files(table)]
    wanted = {key: key for key in range(1000)} | {5: -5, 2000: 1}
    del wanted[7]
    assert state(table) == wanted


def test_a_row_that_several_levels_have_is_aggregated_once():
    table = two_levels({**SUM, **LOOKUP})
    write(table, ("+I", 5, 10))
    assert compact(table) == [("-U", 5, 5), ("+U", 5, 15)]
    assert levels(table) == [4, 5]
    write(table, ("+I", 5, 100))
    assert state(table)[5] == 115  # level 0, 4 and 5
    assert compact(table) == [("-U", 5, 15), ("+U", 5, 115)]
    assert compact(table, "full") == []
    assert state(table)[5] == 115
    assert {row["v"] for row in table.changes(0, None, "diff").to_arrow().to_pylist()} >= {115}


def test_values_without_a_sequence_are_lost_untold_when_their_row_is_written_again():
    # As in Java: the first retract of a key fills its row, later merges skip a null sequence.
    group = {"merge-engine": "partial-update", "fields.s.sequence-group": "v"}
    once = {"num-sorted-run.compaction-trigger": "1"}
    table = new_table({**group, **once, **LOOKUP}, columns=[*COLUMNS, ("s", "INT")])
    write(table, ("-U", 2, 5))
    write(table, ("+I", 2, None))
    assert compact(table) == [("+I", 2, 5, None)]
    assert state(table) == {2: 5}
    write(table, ("+I", 1, None), ("+I", 3, None))
    assert compact(table) == [("+I", 1, None, None), ("+I", 3, None, None)]
    assert state(table) == {1: None, 2: None, 3: None}


def test_a_file_that_only_moves_is_told_without_being_written():
    table = new_table(LOOKUP)
    write(table, ("+I", 1, 1), ("+I", 2, 2))
    [before] = files(table)
    assert compact(table) == [("+I", 1, 1), ("+I", 2, 2)]
    [after] = files(table)
    assert (after.file.file_name, after.file.level) == (before.file.file_name, 5)


def test_full_compaction_tells_of_files_that_move_to_the_highest_level():
    table = new_table(FULL)
    write(table, ("+U", 1, 1))
    [before] = files(table)
    assert compact(table, "full") == [("+I", 1, 1)]
    assert files(table)[0].file.file_name == before.file.file_name


def test_full_compaction_tells_nothing_below_the_highest_level():
    table = two_levels({**FULL, "num-sorted-run.compaction-trigger": "2", "num-levels": "6"})
    write(table, ("+U", 5, 50))
    assert compact(table) == []  # two runs: one may stay
    write(table, ("+U", 5, 51))
    assert compact(table) == []
    assert levels(table) == [4, 5]
    assert compact(table, "full") == [("-U", 5, 5), ("+U", 5, 51)]


def test_rows_that_are_replaced_are_marked_in_one_vector_file():
    table = two_levels(VECTORS)
    for number in range(3):
        write(table, ("+I", number, -1), ("-D", number + 10, 0))
        compact(table)
    snapshot = table.latest_snapshot()
    [vectors] = find_vectors(table._handle, snapshot)[files(table)[0].partition, 0]
    top = next(entry for entry in files(table) if entry.file.level == 5)
    assert find_deleted_rows(table._handle, snapshot).count(top) == 6
    assert [each.data_file_name for each in vectors.ranges or ()] == [top.file.file_name]
    assert state(table)[2] == -1
    assert len(state(table)) == 997
    assert {entry.file.delete_row_count for entry in files(table)} == {0}  # deletes are marks


def test_a_full_compaction_writes_marked_files_anew_and_forgets_the_marks():
    table = two_levels(VECTORS)
    write(table, ("+I", 1, -1))
    compact(table)
    compact(table, "full")
    snapshot = table.latest_snapshot()
    assert find_vectors(table._handle, snapshot) == {}
    assert levels(table) == [5]
    assert len(state(table)) == 1000


def test_vectors_of_files_that_are_gone_are_not_carried_on():
    table = two_levels(VECTORS)
    write(table, ("+I", 1, -1))
    compact(table)
    write(table, ("+I", 2, -2))
    [unit] = table.plan_compaction(strategy="minor").units
    assert unit.marked_elsewhere
    known = write_vectors(table._handle, unit, {})
    assert known == VectorChange()  # nothing changes
    gone = replace(unit, marked_elsewhere=frozenset())
    assert write_vectors(table._handle, gone, {}) == VectorChange((), unit.vectors)


def test_rows_of_level_0_are_seen_when_they_are_compacted_or_asked_for():
    table = two_levels(VECTORS, rows=3)
    write(table, ("+I", 1, -1), ("-D", 2, 0))
    assert state(table) == {0: 0, 1: 1, 2: 2}
    assert table.scan().count() == 3
    compact(table)
    assert state(table) == {0: 0, 1: -1}
    assert table.scan().count() == 2


def test_only_files_with_keys_of_level_0_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    many = {"target-file-size": "1 b", "compaction.small-file-ratio": "0"}
    table = new_table({**LOOKUP, **many})
    for first in (0, 100, 200):
        write(table, *(("+I", first + key, 0) for key in range(10)))
        compact(table, "full")
    assert levels(table) == [5, 5, 5]
    opened = []
    read = DataFiles.key_values

    def noting(self: DataFiles, entry: ManifestEntry, *more: Any, **others: Any) -> Any:
        opened.append(entry.file.level)
        return read(self, entry, *more, **others)

    write(table, ("+I", 105, 1))
    monkeypatch.setattr(DataFiles, "key_values", noting)
    table.compact(strategy="minor", executor="serial")
    assert sorted(opened) == [0, 5]


def test_the_report_counts_what_was_told_and_says_what_that_promises():
    table = new_table(LOOKUP)
    write(table, ("+I", 1, 1), ("+I", 2, 2))
    report = table.compact(strategy="minor")
    assert (report.changelog_rows, report.changelog_files) == (2, 1)
    assert report.changelog_guarantee == "complete"
    assert report.buckets[0].changelog_rows == 2
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.changelog_record_count == 2


@pytest.mark.parametrize(
    ("producer", "promise"),
    [("none", "none"), ("input", "as written"), ("lookup", "complete"), ("full-compaction", "net")],
)
def test_every_producer_has_its_promise(producer: str, promise: str):
    table = new_table({"changelog-producer": producer})
    assert table.compact().changelog_guarantee == promise


def test_lake_changelog_compacts_what_is_not_told_yet(tmp_path):
    table = new_table(LOOKUP, str(tmp_path))
    write(table, ("+I", 1, 1), ("+I", 2, 2))
    run = CliRunner().invoke(app, ["-w", str(tmp_path), "changelog", "shop.t"])
    assert run.output == "2 rows of changelog in snapshot 2\n  bucket 0: 2 rows\n"
    again = CliRunner().invoke(app, ["-w", str(tmp_path), "changelog", "shop.t"])
    said = "nothing to do: 1 sorted run, nothing on level 0; a compaction starts at 5"
    assert again.output.splitlines()[0] == said


def test_lake_changelog_of_a_table_that_keeps_none_is_refused(tmp_path):
    new_table({}, str(tmp_path))
    run = CliRunner().invoke(app, ["-w", str(tmp_path), "changelog", "shop.t"])
    assert isinstance(run.exception, lake.InvalidRequestError)
    assert "'changelog-producer' is 'none'" in str(run.exception)


def with_producer(table: lake.Table, producer: str) -> lake.Table:
    catalog = lake.open_catalog(table.location.rsplit("/", 2)[0])
    return catalog.alter_table("shop.t", lake.set_option("changelog-producer", producer))


@pytest.mark.parametrize("options", [LOOKUP, FULL], ids=["lookup", "full-compaction"])
@pytest.mark.parametrize("producer", ["none", "input"])
def test_the_producer_changes_only_when_the_changelog_has_all_rows(options, producer):
    """Otherwise no stream would deliver the rows of level 0."""
    table = new_table(options)
    write(table, ("+I", 1, 1))
    with pytest.raises(lake.InvalidRequestError, match=r"does not contain.* lake compact first"):
        with_producer(table, producer)
    compact(table, "full")
    assert with_producer(table, producer).options.changelog_producer == producer


def test_between_the_producers_that_compact_only_rows_that_are_not_compacted_again_count():
    table = two_levels({**FULL, "num-sorted-run.compaction-trigger": "2", "num-levels": "6"})
    write(table, ("+U", 5, 50))
    lookup = with_producer(table, "lookup")
    full = with_producer(lookup, "full-compaction")
    write(full, ("+U", 5, 51))
    compact(full)
    assert levels(full) == [4, 5]
    with pytest.raises(lake.InvalidRequestError, match=r"from 'full-compaction' to 'lookup' yet"):
        with_producer(full, "lookup")
    assert compact(full, "full") == [("-U", 5, 5), ("+U", 5, 51)]
    with_producer(full, "lookup")


@pytest.mark.parametrize(
    ("old", "producer", "is_refused"),
    [
        ("lookup", "input", False),
        ("lookup", "none", True),
        ("input", "lookup", False),
        ("input", "none", True),
    ],
)
def test_postponed_rows_wait_only_for_a_producer_that_writes_their_changelog(
    old, producer, is_refused
):
    table = new_table({"changelog-producer": old, "bucket": "-2"})
    write(table, ("+I", 1, 1))
    if is_refused:
        with pytest.raises(lake.InvalidRequestError, match=f"cannot change from '{old}'"):
            with_producer(table, producer)
        compact(table, "full")
        assert with_producer(table, producer).options.changelog_producer == producer
        return
    assert compact(with_producer(table, producer), "full") == [("+I", 1, 1)]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({**FULL, "merge-engine": "first-row"}, "changelog-producer"),
        ({**FULL, **VECTORS}, "deletion-vectors.enabled"),
        ({**FULL, "force-lookup": "true"}, "force-lookup"),
        ({**LOOKUP, "full-compaction.delta-commits": "3"}, "full-compaction.delta-commits"),
        ({"merge-engine": "first-row", **VECTORS}, "deletion-vectors.enabled"),
        ({"changelog-producer.row-deduplicate-ignore-fields": "x"}, "'x'"),
    ],
)
def test_what_no_producer_can_do_is_refused_by_name(options: dict[str, str], named: str):
    with pytest.raises(lake.InvalidRequestError, match=named):
        new_table(options)


def test_a_retract_of_a_first_row_is_refused_when_it_is_written():
    table = new_table({"merge-engine": "first-row"})
    with pytest.raises(lake.InvalidRequestError, match=r"row 1 is -D.*first-row.*ignore-delete"):
        write(table, ("+I", 1, 1), ("-D", 2, 2))
    assert table.latest_snapshot() is None


def test_first_rows_that_a_higher_level_has_are_dropped():
    table = two_levels({"merge-engine": "first-row", **LOOKUP})
    write(table, ("+I", 5, -1), ("+I", 2000, 1))
    assert compact(table) == [("+I", 2000, 1)]
    assert levels(table) == [4, 5]
    assert (state(table)[5], state(table)[2000], len(state(table))) == (5, 1, 1001)


def test_when_the_changelog_cannot_be_written_nothing_is_left(monkeypatch: pytest.MonkeyPatch):
    table = new_table(LOOKUP)
    write(table, ("+I", 1, 1))
    write(table, ("+I", 1, 2))
    storage = table._handle.storage
    before = sorted(each.path for each in storage.list("shop.db/t/bucket-0"))

    def broken(*_: Any, **__: Any) -> Any:
        raise lake.UnavailableError("the disk is full")

    monkeypatch.setattr("lakeformat.paimon.compact.key_value_unit.write_vectors", broken)
    with pytest.raises(lake.UnavailableError, match="disk is full"):
        table.compact(executor="serial")
    assert sorted(each.path for each in storage.list("shop.db/t/bucket-0")) == before
