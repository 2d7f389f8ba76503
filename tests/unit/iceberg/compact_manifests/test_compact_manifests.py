"""A merge of manifests changes no file, row id or sequence number, and loses no other commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import EXISTING
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    head_of,
    ids_of,
    made_table,
    manifests_of,
    referenced_files,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])
KEPT = ("file_path", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")


def filled(storage, version: int = 2, **properties: str) -> TableHandle:
    """A table of five commits, each with files of the partitions a and b."""
    handle = made_table(storage, version, partition={"k": "identity"}, **properties)
    for number in range(0, 10, 2):
        append(handle, rows(number, number + 1))
    return handle


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "k": ["ab"[each % 2] for each in ids]})


def merged(handle: TableHandle):
    return IcebergTable(handle).compact_manifests()


def files_of(handle: TableHandle) -> list[tuple[Any, ...]]:
    """The members of each live file that a merge keeps."""
    live = (each for each in entries_of(handle) if each["status"] != 2)
    return sorted(tuple(each[name] for name in KEPT) for each in live)


def partitions_of(handle: TableHandle) -> list[list[tuple[bytes, bytes]]]:
    """The bounds of the partitions of each manifest."""
    summaries = manifests_of(handle)["partitions"].to_pylist()
    return [[(each["lower_bound"], each["upper_bound"]) for each in one] for one in summaries]


@VERSIONS
def test_files_keep_their_numbers_and_row_ids(storage, version):
    handle = filled(storage, version)
    before = files_of(handle)
    report = merged(handle)
    assert files_of(handle) == before
    assert {each["status"] for each in entries_of(handle)} == {EXISTING}
    assert (report.manifests_before, report.manifests_after) == (5, 1)
    assert ids_of(handle) == [*range(10)]
    assert stored_files(storage) == referenced_files(handle)


def test_the_summary_counts_manifests_and_entries(storage):
    handle = filled(storage)
    before = head_of(handle).summary
    merged(handle)
    summary = head_of(handle).summary
    assert summary["operation"] == "replace"
    counts = ("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed")
    assert [summary[each] for each in counts] == ["1", "0", "5", "10"]
    totals = {key: value for key, value in before.items() if key.startswith("total-")}
    assert totals.items() <= summary.items()


def test_full_manifests_have_few_partitions_each(storage):
    handle = filled(storage)
    size = merged(handle).bytes_after
    properties = {"commit.manifest.target-size-bytes": str(size * 5 // 8)}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, properties))
    assert merged(handle).manifests_after == 2
    assert partitions_of(handle) == [[(b"a", b"a")], [(b"b", b"b")]]


def test_a_second_merge_has_nothing_to_do(storage):
    handle = filled(storage)
    merged(handle)
    head = head_of(handle)
    report = merged(handle)
    assert (report.snapshot_id, report.reason) == (None, "no manifest needs merging")
    assert head_of(handle) == head
    assert stored_files(storage) == referenced_files(handle)


def test_a_dry_run_publishes_nothing(storage):
    handle = filled(storage)
    before = stored_files(storage)
    report = IcebergTable(handle).compact_manifests(dry_run=True)
    assert report.reason == "would merge manifests: 5 manifests, where 1 would be enough"
    assert (report.manifests_merged, report.manifests_after) == (5, None)
    assert stored_files(storage) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_empty_table_has_nothing_to_merge(storage, dry_run):
    report = IcebergTable(made_table(storage)).compact_manifests(dry_run=dry_run)
    assert report.reason == "no manifest needs merging"
    assert report.manifests_before == 0


def test_entries_of_deleted_files_are_dropped(storage):
    handle = filled(storage)
    merged(handle)
    IcebergTable(handle).drop_partitions([{"k": "a"}])
    assert merged(handle).reason.endswith(": 5 entries of deleted files")
    assert {each["status"] for each in entries_of(handle)} == {EXISTING}
    assert ids_of(handle) == [1, 3, 5, 7, 9]


def test_a_table_without_live_files_gets_no_manifest(storage):
    handle = filled(storage)
    IcebergTable(handle).truncate()
    assert merged(handle).manifests_after == 0
    assert ids_of(handle) == []


def test_deletes_are_merged_apart_from_data(storage):
    handle = made_table(storage)
    append(handle, rows(0, 1, 2, 3))
    delete_by_key(handle, 1)
    delete_by_key(handle, 3)
    append(handle, rows(3))
    assert merged(handle).manifests_after == 2
    assert sorted(manifests_of(handle)["content"].to_pylist()) == [0, 1]
    assert ids_of(handle) == [0, 2, 3]


def test_each_partition_spec_has_manifests_of_its_own(storage):
    handle = filled(storage)
    bucket = PartitionSpec(1, (PartitionField((1,), 1001, "id_bucket", "bucket[2]"),))
    commit_metadata(
        handle,
        lambda loaded: replace(
            loaded.metadata,
            partition_specs=(*loaded.metadata.partition_specs, bucket),
            default_spec_id=1,
        ),
    )
    append(handle, rows(10))
    append(handle, rows(11))
    assert merged(handle).manifests_after == 2
    assert manifests_of(handle)["partition_spec_id"].to_pylist() == [0, 1]
    assert ids_of(handle) == [*range(12)]


@VERSIONS
def test_rows_that_are_appended_meanwhile_are_kept(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: append(other, rows(20)))
    assert merged(handle).manifests_after == 2
    assert ids_of(handle) == [*range(10), 20]
    assert head_of(handle).summary["manifests-kept"] == "1"
    assert head_of(handle).summary["total-records"] == "11"
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_files_that_are_removed_meanwhile_do_not_come_back(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: IcebergTable(other).drop_partitions([{"k": "a"}]))
    assert merged(handle).manifests_after == 1
    assert ids_of(handle) == [1, 3, 5, 7, 9]
    assert stored_files(storage) == referenced_files(handle)


def test_a_merge_of_another_process_is_not_repeated(storage):
    handle = filled(storage)
    meanwhile(handle, merged)
    assert merged(handle).snapshot_id is None
    assert len(handle.load().metadata.snapshots) == 6
    assert stored_files(storage) == referenced_files(handle)


def test_row_ids_that_another_writer_gives_meanwhile_are_kept(storage):
    handle = filled(storage, 2)
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
    )
    meanwhile(handle, lambda other: append(other, rows(20)))
    merged(handle)
    number = KEPT.index("first_row_id")
    row_ids = {each[0]: each[number] for each in files_of(handle)}
    assert len({*row_ids.values()}) == 11
    assert max(row_ids.values()) < 11


def test_an_upgrade_of_the_table_meanwhile_makes_other_manifests(storage):
    handle = filled(storage, 1)
    before = IcebergTable(handle).scan().to_arrow().sort_by("id")

    def upgrade(other):
        commit_metadata(other, lambda loaded: replace(loaded.metadata, format_version=2))

    meanwhile(handle, upgrade)
    IcebergTable(handle).compact_manifests()
    assert IcebergTable(handle_on(storage)).scan().to_arrow().sort_by("id") == before


def test_a_fault_at_any_storage_call_loses_no_file():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        filled(found, 3)
        return found

    def act(storage, acknowledged):
        acknowledged.append(merged(handle_on(storage, simulated(5))).manifests_after)

    for trial in sampled_states(act, start=start(), seed=SEED):
        handle = handle_on(trial.reopened(), simulated(99))
        assert ids_of(handle) == [*range(10)], trial
        merged(handle)
        assert len(manifests_of(handle)) == 1, trial
        replaced = [e for e in handle.load().metadata.snapshots if e.operation == "replace"]
        assert len(replaced) == 1, trial
