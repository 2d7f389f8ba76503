"""Scans of golden Iceberg tables: arguments, splits, explanations, and what they read."""

from __future__ import annotations

import pickle
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.iceberg.read.where import row_filter
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from tests.conformance.iceberg.test_golden_rows import opened, rows_of
from tests.golden.iceberg_values import sorted_rows


def scan(name: str, *columns: str, **arguments: Any) -> Scan:
    _, metadata, places = opened(name)
    return scan_in(places, metadata, *columns, **arguments)


def scan_in(
    places: FilePlaces,
    metadata: TableMetadata,
    *columns: str,
    where: Where | None = None,
    partitions: Partitions | None = None,
    limit: int | None = None,
    **chosen: Any,
) -> Scan:
    state = find_state(places, metadata, **chosen)
    asked = row_filter(metadata, state.schema, where, partitions)
    return Scan(state, list(columns) or None, asked, limit)


def ids(found: Scan) -> list[int]:
    return sorted(found.to_arrow().column("id").to_pylist())


def test_the_explanation_counts_what_each_level_left_out():
    plan = scan("hour_action", where="id >= 55").explain()
    assert (plan.files, plan.left_out_by_partition, plan.left_out_by_statistics) == (12, 0, 10)
    assert (plan.files_to_read, plan.splits, plan.raw_splits) == (2, 2, 2)
    plan = scan("hour_action", where="event_time < '2020-06-04 20:00:00'").explain()
    assert (plan.left_out_by_partition, plan.left_out_by_statistics) == (6, 0)
    assert plan.manifests_read < plan.manifests
    assert str(plan).startswith(f"snapshot {plan.snapshot_id}: 12 files in 6 manifests")


def test_the_explanation_counts_the_deletes_that_apply():
    plan = scan("v3_deletion_vectors").explain()
    assert plan.delete_files > 0
    assert str(plan).endswith(f"delete files: {plan.delete_files}")


class Recording:
    """A storage that records its calls, and lists nothing."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name == "list":
            raise AssertionError("a directory was listed")
        if name in ("read", "open_input"):
            self.calls[name] += 1
        return getattr(self._storage, name)


def test_planning_lists_nothing_and_reads_only_manifests_that_may_match():
    _, metadata, places = opened("hour_action")
    storage: Any = Recording(places.storage)
    where = "event_time < '2020-06-04 20:00:00'"
    found = scan_in(replace(places, storage=storage), metadata, where=where)
    read = found.explain().manifests_read
    assert storage.calls == {"read": 1 + read}  # the manifest list, and its manifests


def test_partitions_are_chosen_by_the_values_of_their_columns():
    everything = scan("identity_partitions").to_arrow().to_pylist()
    some = scan("identity_partitions", partitions=[{"r": "eu west"}, {"r": None}])
    chosen = [row["id"] for row in everything if row["r"] in ("eu west", None)]
    assert ids(some) == sorted(chosen) != []
    assert scan("identity_partitions", partitions=[]).count() == 0
    assert scan("identity_partitions", partitions={}).count() == len(everything)


def test_a_partition_that_is_not_a_column_is_refused_with_the_way_to_choose_it():
    with pytest.raises(InvalidRequestError, match=r"'event_time_hour' is not a part.*where"):
        scan("hour_action", partitions={"event_time_hour": 442027})


def test_columns_are_read_in_the_order_they_are_named():
    found = scan("hour_action", "action", "id")
    assert found.schema == pa.schema([("action", pa.string()), ("id", pa.int64())])
    with pytest.raises(InvalidRequestError, match="columns must name some of"):
        scan("hour_action", "_row_id")


def test_a_condition_may_name_a_column_that_is_not_read():
    found = scan("hour_action", "action", where=lake.col("id") == 55)
    assert found.to_arrow().num_rows == 1
    assert found.to_arrow().column_names == ["action"]


@pytest.mark.parametrize("limit", [0, 1, 7, 1000])
def test_a_limit_ends_the_scan(limit):
    found = scan("six_commits", limit=limit)
    assert found.to_arrow().num_rows == found.count() == min(limit, 60)


@pytest.mark.parametrize("value", ["f79c3e09-677c-4bbd-a479-3f349cb785e7", uuid.UUID(int=0), None])
def test_a_uuid_is_compared_by_its_text(value):
    rows = scan("java_types").to_arrow().to_pylist()
    column = lake.col("u")
    where = column.is_null() if value is None else column == value
    wanted = None if value is None else uuid.UUID(str(value)).bytes
    assert scan("java_types", where=where).count() == sum(row["u"] == wanted for row in rows)
    with pytest.raises(InvalidRequestError, match="is a uuid"):
        scan("java_types", where="u = 'f79c'")


@pytest.mark.parametrize("name", ["equality_deletes", "v3_deletion_vectors", "avro_orc_files"])
def test_a_split_is_read_alone_by_a_scan_with_the_same_arguments(name):
    _, metadata, places = opened(name)
    found = scan_in(places, metadata)
    splits = pickle.loads(pickle.dumps(found.splits()))
    alone = [batch for split in reversed(splits) for batch in scan_in(places, metadata).read(split)]
    rows = pa.Table.from_batches(alone, found.schema).to_pylist()
    assert sorted_rows_of(rows) == sorted_rows_of(found.to_arrow().to_pylist())


def sorted_rows_of(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows)


def test_a_split_of_another_snapshot_is_refused():
    old = opened("six_commits")[1].snapshots[0].snapshot_id
    [split] = scan("six_commits", snapshot=old).splits()
    with pytest.raises(InvalidRequestError, match="the split belongs to snapshot"):
        list(scan("six_commits").read(split))


def test_a_time_chooses_the_snapshot_that_was_current_then():
    table, _, _ = opened("six_commits")
    for expected in table.expected["snapshots"]:
        found = scan("six_commits", as_of=expected["timestamp_ms"])
        assert rows_of(found) == sorted_rows(expected["rows"])
    first = table.expected["snapshots"][0]["timestamp_ms"]
    with pytest.raises(NotFoundError, match="had no snapshot at"):
        scan("six_commits", as_of=first - 1)


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"tag": "rel/1.1"}, r"has no tag 'rel/1\.1'.*rel/1\.0"),
        ({"branch": "rel/1.0"}, "has no branch 'rel/1.0'"),
        ({"snapshot": 7}, "has no snapshot 7"),
    ],
)
def test_a_state_that_does_not_exist_is_named(chosen, error):
    with pytest.raises(NotFoundError, match=error):
        scan("branches_tags", **chosen)


def test_only_one_state_can_be_chosen():
    with pytest.raises(InvalidRequestError, match=r"pass only one of tag='rel/1\.0', branch='dev'"):
        scan("branches_tags", tag="rel/1.0", branch="dev")
