"""Fewer delete files delete the same rows, also beside other writers."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states
from tests.unit.iceberg.compact.made_deletes import (
    delete_by_key,
    delete_by_position,
    delete_by_vector,
)
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    head_of,
    ids_of,
    made_table,
    referenced_files,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [2, 3])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "k": ["a"] * len(ids)})


def filled(storage, version: int = 2, **properties: str) -> TableHandle:
    """Two files, with the rows 0 to 3 and 10 to 13."""
    handle = made_table(storage, version, **properties)
    append(handle, rows(0, 1, 2, 3))
    append(handle, rows(10, 11, 12, 13))
    return handle


def data_files(handle: TableHandle) -> list[str]:
    """The paths of the data files, by their first row."""
    live = [each for each in entries_of(handle) if each["status"] != 2 and not each["content"]]
    ordered = sorted(live, key=lambda each: dict(each["lower_bounds"])[1])
    return [each["file_path"] for each in ordered]


def deletes_of(handle: TableHandle) -> list[tuple[str, int, int]]:
    """The format, the rows and the sequence number of each live delete file."""
    live = (each for each in entries_of(handle) if each["status"] != 2 and each["content"])
    members = ("file_format", "record_count", "sequence_number")
    return sorted(tuple(each[name] for name in members) for each in live)


def with_positions(storage, version: int = 2, **properties: str) -> TableHandle:
    """Four files of position deletes, which may be of any data file."""
    handle = filled(storage, **properties)
    first, second = data_files(handle)
    for path, position in ((first, 0), (second, 1), (first, 2), (second, 3)):
        delete_by_position(handle, path, position)
    if version == 3:
        upgrade(handle)
    return handle


def upgrade(handle: TableHandle) -> None:
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
    )


def compacted(handle: TableHandle, **options):
    return IcebergTable(handle).compact_deletes(**options)


LEFT = [1, 3, 10, 12]


def test_position_deletes_are_merged_by_data_file(storage):
    handle = with_positions(storage)
    report = compacted(handle)
    assert (report.replaced, report.added, report.positions) == (4, 2, 4)
    assert deletes_of(handle) == [("PARQUET", 2, 6), ("PARQUET", 2, 6)]
    assert ids_of(handle) == LEFT
    assert head_of(handle).operation == "replace"
    assert head_of(handle).summary["total-position-deletes"] == "4"
    assert stored_files(storage) == referenced_files(handle)


def test_position_deletes_are_merged_by_partition(storage):
    handle = with_positions(storage, write_delete_granularity="partition")
    assert compacted(handle).added == 1
    assert deletes_of(handle) == [("PARQUET", 4, 6)]
    assert ids_of(handle) == LEFT


def test_position_deletes_become_vectors_in_version_3(storage):
    handle = with_positions(storage, 3)
    compacted(handle)
    assert deletes_of(handle) == [("PUFFIN", 2, 6), ("PUFFIN", 2, 6)]
    assert ids_of(handle) == LEFT
    assert compacted(handle).reason == "no delete file needs merging"


@VERSIONS
def test_equality_deletes_become_positions_if_that_is_asked_for(storage, version):
    handle = filled(storage, version)
    delete_by_key(handle, 1, 12)
    delete_by_key(handle, 2)
    append(handle, rows(1))
    assert compacted(handle).snapshot_id is None
    report = compacted(handle, convert_equality=True)
    assert (report.replaced, report.dangling, report.added) == (2, 0, 2)
    kind = "PARQUET" if version == 2 else "PUFFIN"
    assert [each[:2] for each in deletes_of(handle)] == [(kind, 1), (kind, 2)]
    assert ids_of(handle) == [0, 1, 3, 10, 11, 13]
    assert head_of(handle).summary["total-equality-deletes"] == "0"
    assert stored_files(storage) == referenced_files(handle)


def test_converted_keys_and_merged_positions_share_a_vector(storage):
    handle = with_positions(storage, 3)
    delete_by_key(handle, 1)
    compacted(handle, convert_equality=True)
    assert sorted(each[1] for each in deletes_of(handle)) == [2, 3]
    assert ids_of(handle) == [3, 10, 12]


def test_a_vector_is_rewritten_only_if_more_rows_of_its_file_are_deleted(storage):
    handle = filled(storage, 3)
    first, second = data_files(handle)
    delete_by_vector(handle, first, 0)
    delete_by_vector(handle, second, 0)
    delete_by_key(handle, 13)
    report = compacted(handle, convert_equality=True)
    assert (report.replaced, report.added) == (2, 1)
    assert deletes_of(handle) == [("PUFFIN", 1, 3), ("PUFFIN", 2, 5)]
    assert ids_of(handle) == [1, 2, 3, 11, 12]


def test_deletes_without_a_data_file_are_removed(storage):
    handle = with_positions(storage)
    IcebergTable(handle).write(rows(7), overwrite="table")
    delete_by_key(handle, 5)
    assert IcebergTable(handle).compact_deletes(dry_run=True).dangling == len(deletes_of(handle))
    report = compacted(handle)
    assert (report.replaced, report.added) == (0, 0)
    assert "that no data file needs" in report.reason
    assert deletes_of(handle) == []
    assert ids_of(handle) == [7]


def test_a_vector_without_its_data_file_is_removed(storage):
    handle = filled(storage, 3)
    delete_by_vector(handle, "memory://t/shop/orders/data/gone.parquet", 0)
    delete_by_vector(handle, data_files(handle)[0], 1)
    assert compacted(handle).dangling == 1
    assert deletes_of(handle) == [("PUFFIN", 1, 4)]
    assert ids_of(handle) == [0, 2, 3, 10, 11, 12, 13]


def test_positions_in_removed_files_are_dropped(storage):
    handle = filled(storage)
    first, _ = data_files(handle)
    delete_by_position(handle, first, 0)
    delete_by_position(handle, "memory://t/shop/orders/data/gone.parquet", 0, 1)
    delete_by_position(handle, first, 2)
    compacted(handle)
    assert deletes_of(handle) == [("PARQUET", 2, 5)]
    assert ids_of(handle) == [1, 3, 10, 11, 12, 13]


def test_merged_deletes_are_rewritten_only_if_that_is_asked_for(storage):
    handle = with_positions(storage)
    compacted(handle)
    assert compacted(handle).reason == "no delete file needs merging"
    assert compacted(handle, rewrite_all=True).replaced == 2
    assert ids_of(handle) == LEFT


def test_a_dry_run_publishes_nothing(storage):
    handle = with_positions(storage)
    before = stored_files(storage)
    report = compacted(handle, dry_run=True)
    assert report.reason == "would replace 4 delete files"
    assert (report.replaced, report.added, stored_files(storage)) == (4, None, before)


def test_an_empty_table_has_nothing_to_merge(storage):
    assert compacted(made_table(storage)).reason == "no delete file needs merging"


def test_the_same_identity_publishes_once(storage):
    handle = with_positions(storage)
    first = compacted(handle, commit=lake.CommitId("nightly", 1))
    again = compacted(handle, rewrite_all=True, commit=lake.CommitId("nightly", 1))
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)


@VERSIONS
def test_rows_that_are_appended_meanwhile_are_kept(storage, version):
    handle = with_positions(storage, version)
    meanwhile(handle, lambda other: append(other, rows(0, 20)))
    compacted(handle)
    assert ids_of(handle) == [0, *LEFT, 20]
    assert stored_files(storage) == referenced_files(handle)


def test_rows_that_get_a_vector_meanwhile_do_not_come_back(storage):
    handle = with_positions(storage, 3)
    meanwhile(handle, lambda other: IcebergTable(other).delete("id = 3"))
    compacted(handle)
    assert ids_of(handle) == [1, 10, 12]
    assert len(deletes_of(handle)) == 2
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_a_key_that_is_deleted_meanwhile_stays_deleted(storage, version):
    handle = filled(storage, version)
    delete_by_key(handle, 1)
    meanwhile(handle, lambda other: delete_by_key(other, 2))
    compacted(handle, convert_equality=True)
    assert ids_of(handle) == [0, 3, 10, 11, 12, 13]


@VERSIONS
def test_a_compaction_meanwhile_brings_no_row_back(storage, version):
    handle = filled(storage, version)
    delete_by_key(handle, 1)
    meanwhile(handle, lambda other: IcebergTable(other).compact(rewrite_all=True))
    compacted(handle, convert_equality=True)
    assert ids_of(handle) == [0, 2, 3, 10, 11, 12, 13]
    assert stored_files(storage) == referenced_files(handle)


def test_no_file_is_left_after_the_last_conflict(storage):
    handle = with_positions(storage)
    properties = {"commit.retry.num-retries": "0"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, properties))
    before = stored_files(storage)

    class Losing(type(handle.pointer)):
        def publish(self, base, metadata):
            return None

    handle.pointer.__class__ = Losing
    with pytest.raises(CommitConflictError):
        compacted(handle)
    assert stored_files(storage) == before


@VERSIONS
def test_random_deletes_are_the_same_after_each_compaction(storage, version):
    random = Random(SEED)
    handle = made_table(storage, version)
    left: set[int] = set()
    for step in range(count(4, whole=12)):
        new = range(step * 10, step * 10 + 5)
        append(handle, rows(*new))
        left |= {*new}
        gone = random.sample(sorted(left), 3)
        delete_by_key(handle, gone[0])
        IcebergTable(handle).delete(f"id in ({gone[1]}, {gone[2]})")
        left -= {*gone}
        if random.random() < 0.4:
            compacted(handle, convert_equality=random.random() < 0.5)
            assert ids_of(handle) == sorted(left), SEED
    compacted(handle, convert_equality=True)
    assert ids_of(handle) == sorted(left), SEED
    assert head_of(handle).summary["total-equality-deletes"] == "0"


def test_a_fault_at_any_storage_call_changes_no_row():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        handle = made_table(found, 3)
        append(handle, rows(0, 1, 2, 3))
        delete_by_key(handle, 1)
        delete_by_key(handle, 2)
        return found

    def act(storage, acknowledged):
        handle = handle_on(storage, simulated(len(storage.files())))
        commit = lake.CommitId("nightly", 1)
        acknowledged.append(compacted(handle, convert_equality=True, commit=commit).added)

    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        assert ids_of(handle) == [0, 3], trial
        act(storage, [])
        assert ids_of(handle) == [0, 3], trial
        replaced = [e for e in handle.load().metadata.snapshots if e.operation == "replace"]
        assert len(replaced) == 1, trial
        assert referenced_files(handle) <= set(storage.files()), trial
