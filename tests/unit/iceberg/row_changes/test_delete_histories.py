"""Random histories of two writers: the rows are always those of one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import simulated
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    ids_of,
    made_table,
    referenced_files,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [2, 3])


def rows(*ids: int) -> pa.Table:
    texts = [f"k{each % 2}" for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})


def expire_old(handle: TableHandle) -> None:
    """Expire every snapshot but the newest."""
    old = [each.snapshot_id for each in handle.load().metadata.snapshots[:-1]]
    IcebergTable(handle).expire_snapshots(snapshots=old)


class Act:
    """Something that a writer does, and what that makes of the ids in the table."""

    def __init__(
        self, name: str, act: Callable[[TableHandle], Any], model: Callable[[list[int]], list[int]]
    ) -> None:
        self.name, self.act, self.model = name, act, model

    def __repr__(self) -> str:
        return self.name


def deleted(remainder: int, divisor: int) -> Act:
    chosen = [each for each in range(20) if each % divisor == remainder]
    where = f"id IN ({', '.join(map(str, chosen))})"
    return Act(
        f"delete {where}",
        lambda handle: IcebergTable(handle).delete(where),
        lambda ids: [each for each in ids if each not in chosen],
    )


def added(first: int, count: int) -> Act:
    new = [*range(first, first + count)]
    return Act(
        f"add {new}", lambda handle: IcebergTable(handle).write(rows(*new)), lambda ids: ids + new
    )


ACTS = st.one_of(
    st.builds(deleted, st.integers(0, 1), st.integers(2, 5)),
    st.builds(added, st.integers(0, 12), st.integers(1, 6)),
    st.sampled_from(
        [
            Act(
                "compact",
                lambda handle: IcebergTable(handle).compact(rewrite_all=True),
                lambda ids: ids,
            ),
            Act(
                "overwrite",
                lambda handle: IcebergTable(handle).write(rows(3, 4), overwrite="table"),
                lambda ids: [3, 4],
            ),
            Act(
                "delete below 7",
                lambda handle: IcebergTable(handle).delete("id < 7"),
                lambda ids: [each for each in ids if each >= 7],
            ),
        ]
    ),
)


@settings(max_examples=8)
@given(st.sampled_from([2, 3]), st.booleans(), st.lists(st.tuples(ACTS, ACTS), max_size=3))
def test_what_two_writers_do_at_once_is_done_one_after_the_other(version, is_split, history):
    storage = MemoryStorage("t")
    handle = made_table(storage, version, partition={"k": "identity"} if is_split else None)
    IcebergTable(handle).write(rows(*range(10)))
    model = [*range(10)]
    for number, (first, second) in enumerate(history):
        slow = handle_on(storage, simulated(100 + number))
        waiting = meanwhile(slow, first.act, seed=200 + number)
        second.act(slow)
        order = [second, first] if waiting else [first, second]
        if waiting:  # nothing was published before which it could act
            waiting.clear()
            first.act(slow)
        for each in order:
            model = each.model(model)
        assert Counter(ids_of(handle)) == Counter(model), order
    assert stored_files(storage) <= referenced_files(handle)


# Files of several row groups, specs and formats


@VERSIONS
def test_positions_count_from_the_start_of_the_file_although_row_groups_are_skipped(
    storage, version
):
    handle = made_table(storage, version)
    small = {"write.parquet.row-group-size-bytes": "400"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, small))
    IcebergTable(handle).write(rows(*range(100)))
    assert len(entries_of(handle)[0]["split_offsets"]) > 3
    IcebergTable(handle).delete("id IN (40, 97)")
    IcebergTable(handle).delete("id > 97")
    assert ids_of(handle) == [each for each in range(97) if each != 40]


@VERSIONS
def test_rows_of_a_table_whose_new_files_would_be_orc_are_deleted(storage, version):
    handle = made_table(storage, version)
    IcebergTable(handle).write(rows(*range(4)))
    orc = {"write.format.default": "orc"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, orc))
    IcebergTable(handle).delete("id = 2")
    assert ids_of(handle) == [0, 1, 3]


@VERSIONS
def test_deletes_belong_to_the_spec_and_partition_of_their_data_file(storage, version):
    handle = made_table(storage, version, partition={"k": "identity"})
    IcebergTable(handle).write(rows(*range(6)))
    by_id = PartitionSpec(1, (PartitionField((1,), 1001, "id_bucket", "bucket[4]"),))

    def with_new_spec(loaded):
        specs = (*loaded.metadata.partition_specs, by_id)
        return replace(
            loaded.metadata, partition_specs=specs, default_spec_id=1, last_partition_id=1001
        )

    commit_metadata(handle, with_new_spec)
    IcebergTable(handle).write(rows(*range(6, 12)))
    IcebergTable(handle).delete("id IN (2, 7)")
    found = {each["spec_id"] for each in entries_of(handle) if each["content"]}
    assert found == {0} or found == {0, 1}
    assert ids_of(handle) == [0, 1, 3, 4, 5, 6, 8, 9, 10, 11]
    delete_by_key(handle, 0, partition={"k_part": "k0"})
    IcebergTable(handle).delete("id IN (0, 4)")
    assert ids_of(handle) == [1, 3, 5, 6, 8, 9, 10, 11]


@VERSIONS
def test_a_puffin_file_that_is_still_needed_survives_an_expiry(storage, version):
    """One vector of the file was replaced, the other one is live."""
    handle = made_table(storage, version)
    for first in (0, 5):
        IcebergTable(handle).write(rows(*range(first, first + 5)))
    IcebergTable(handle).delete("id IN (1, 6)")
    IcebergTable(handle).delete("id = 2")
    expire_old(handle)
    assert len(handle.load().metadata.snapshots) == 1
    assert ids_of(handle) == [0, 3, 4, 5, 7, 8, 9]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_an_expiry_of_the_planned_snapshot_meanwhile_is_searched_again(storage, version):
    handle = made_table(storage, version)
    IcebergTable(handle).write(rows(*range(10)))
    IcebergTable(handle).delete("id = 1")

    def act(other):
        IcebergTable(other).delete("id = 2")
        expire_old(other)

    meanwhile(handle, act)
    IcebergTable(handle).delete("id = 3")
    assert ids_of(handle) == [0, 4, 5, 6, 7, 8, 9]
    assert stored_files(storage) <= referenced_files(handle)


@VERSIONS
def test_readers_of_changes_see_each_deleted_row_once(storage, version):
    handle = made_table(storage, version)
    table = IcebergTable(handle)
    table.write(rows(*range(6)))
    before = table.position()
    table.delete("id = 1")
    table.delete("id IN (1, 2)")
    table.delete("id < 4")
    found = table.changes(before).to_arrow().sort_by("id").to_pylist()
    assert [(each["rowkind"], each["id"]) for each in found] == [("-D", each) for each in range(4)]


GOLDEN = [
    "add_files_name_mapping",
    "all_types",
    "avro_orc_files",
    "bucket_truncate",
    "equality_deletes",
    "hour_action",
    "identity_partitions",
    "mor_partition_granularity",
    "mor_position_deletes",
    "nested",
    "schema_evolution",
    "spec_evolution",
    "time_transforms",
    "v2_upgraded_to_v3",
    "v3_deletion_vectors",
    "v3_types_defaults",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", GOLDEN)
def test_any_table_of_java_loses_exactly_the_rows_of_a_condition(name, tmp_path):
    golden = iceberg_table(name)
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    table = lake.open_table(str(tmp_path / "t"))
    rows = table.scan().to_arrow()
    column = next(
        each for each in ("id", "i", *table.schema.column_names) if each in rows.column_names
    )
    values = sorted({each for each in rows[column].to_pylist() if each is not None})
    for chosen in (values[:1], values[2:4]):
        kept = [each for each in rows.to_pylist() if each[column] not in chosen]
        table.delete(f"{column} IN ({', '.join(map(repr, chosen))})")
        left = table.scan().to_arrow()
        assert sorted(map(repr, left.to_pylist())) == sorted(map(repr, kept))
        rows = left
