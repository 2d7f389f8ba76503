"""Rows are deleted by a condition: by vectors or positions, once, and without a lost row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, DELETED
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key, delete_by_position
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.path_table import ROOT, handle_on, path_table
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    head_of,
    ids_of,
    made_table,
    manifests_of,
    referenced_files,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [2, 3])


def rows(*ids: int) -> pa.Table:
    texts = [f"k{each % 2}" for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})


def filled(storage, version: int = 2, **more) -> TableHandle:
    """Two files of five rows each: 0 to 4, and 5 to 9."""
    handle = made_table(storage, version, **more)
    for first in (0, 5):
        IcebergTable(handle).write(rows(*range(first, first + 5)))
    return handle


def delete(handle: TableHandle, where: str, **options):
    return IcebergTable(handle).delete(where, **options)


def deletes_of(handle: TableHandle) -> list[dict[str, Any]]:
    """The live entries of deletes, in the order of their data files."""
    live = [each for each in entries_of(handle) if each["status"] != DELETED]
    found = [each for each in live if each["content"] != DATA]
    return sorted(found, key=lambda each: each["referenced_data_file"] or "")


def file_with(handle: TableHandle, first: int) -> str:
    """The path of the data file whose first row is the one with this id."""
    bound = first.to_bytes(8, "little")
    [found] = [
        each["file_path"]
        for each in entries_of(handle)
        if each["content"] == DATA and dict(each["lower_bounds"])[1] == bound
    ]
    return str(found)


# What a delete writes


@VERSIONS
def test_rows_inside_of_files_are_deleted_by_their_positions(storage, version):
    handle = filled(storage, version)
    report = delete(handle, "id IN (1, 3, 9)")
    assert (report.rows, report.files_marked, report.files_removed) == (3, 2, 0)
    assert ids_of(handle) == [0, 2, 4, 5, 6, 7, 8]
    assert [each["record_count"] for each in deletes_of(handle)] in ([2, 1], [1, 2])
    assert stored_files(storage) == referenced_files(handle)


def test_version_3_has_a_vector_for_each_file_in_one_puffin_file(storage):
    handle = filled(storage, 3)
    delete(handle, "id IN (1, 6)")
    found = deletes_of(handle)
    assert {each["file_format"] for each in found} == {"PUFFIN"}
    assert len({each["file_path"] for each in found}) == 1
    assert {each["referenced_data_file"] for each in found} == {
        file_with(handle, 0),
        file_with(handle, 5),
    }
    [size] = {each["file_size_in_bytes"] for each in found}
    assert size == len(storage.read(handle.load().places.place(found[0]["file_path"])[1]))


def test_version_2_has_a_file_of_positions_for_each_data_file(storage):
    handle = filled(storage, 2)
    delete(handle, "id IN (1, 3)")
    [entry] = deletes_of(handle)
    path = file_with(handle, 0)
    assert entry["referenced_data_file"] == path
    bounds = {name: dict(entry[name]) for name in ("lower_bounds", "upper_bounds")}
    assert bounds["lower_bounds"][2147483546] == bounds["upper_bounds"][2147483546] == path.encode()
    content = storage.read(handle.load().places.place(entry["file_path"])[1])
    table = pq.read_table(pa.BufferReader(content))
    assert table.to_pylist() == [{"file_path": path, "pos": 1}, {"file_path": path, "pos": 3}]
    ids = [each.metadata[b"PARQUET:field_id"] for each in table.schema]
    assert ids == [b"2147483546", b"2147483545"]


def test_partitions_that_another_writer_ends_meanwhile_do_not_decide_any_more(storage):
    handle = filled(storage, 2, partition={"k": "identity"})

    def end_partitions(other):
        metadata = other.load().metadata
        specs = (
            *metadata.partition_specs,
            replace(metadata.partition_specs[0], spec_id=1, fields=()),
        )
        newer = replace(metadata, partition_specs=specs, default_spec_id=1)
        commit_metadata(other, lambda _: newer)
        IcebergTable(other).write(rows(20, 21))

    meanwhile(handle, end_partitions)
    delete(handle, "k = 'k1'")
    assert ids_of(handle) == [0, 2, 4, 6, 8, 20]


def test_a_column_that_another_writer_drops_meanwhile_has_no_rows_to_delete(storage):
    handle = filled(storage, 2, partition={"k": "identity"})

    def drop_column(other):
        metadata = other.load().metadata
        schema = replace(metadata.schema, schema_id=1, fields=metadata.schema.fields[:1])
        schemas = (*metadata.schemas, schema)
        newer = replace(metadata, schemas=schemas, current_schema_id=1)
        commit_metadata(other, lambda _: newer)

    meanwhile(handle, drop_column)
    with pytest.raises(InvalidRequestError, match="names 'k', which is not a column"):
        delete(handle, "k = 'k1'")
    assert ids_of(handle) == [*range(10)]


def test_rows_of_partitions_are_not_counted_if_files_of_deletes_may_name_others(storage):
    handle = filled(storage, 2, partition={"k": "identity"}, write_delete_granularity="partition")
    table = IcebergTable(handle)
    table.delete("id = 1")
    table.compact(partitions={"k": "k1"}, rewrite_all=True)
    assert deletes_of(handle), "the file of deletes is kept, though its data file has left"
    report = table.delete("k = 'k1'")
    assert (report.rows, report.files_removed) == (None, 1)


def test_a_file_of_positions_for_each_partition_is_sorted_by_path_and_position(storage):
    handle = filled(storage, 2, partition={"k": "identity"}, write_delete_granularity="partition")
    delete(handle, "id IN (0, 2, 5, 7, 8)")
    found = deletes_of(handle)
    assert [each["partition"]["k_part"] for each in found] in (["k0", "k1"], ["k1", "k0"])
    for entry in found:
        content = storage.read(handle.load().places.place(entry["file_path"])[1])
        pairs = [tuple(row.values()) for row in pq.read_table(pa.BufferReader(content)).to_pylist()]
        assert pairs == sorted(pairs)
        assert not entry["lower_bounds"] or len({path for path, _ in pairs}) == 1
    assert ids_of(handle) == [1, 3, 4, 6, 9]
    delete(handle, "id = 3")
    assert len(deletes_of(handle)) == 3, "as in Java, older files of a partition are kept"
    assert ids_of(handle) == [1, 4, 6, 9]


@VERSIONS
def test_later_deletes_of_a_file_are_merged_into_one(storage, version):
    handle = filled(storage, version)
    delete(handle, "id = 1")
    delete(handle, "id <= 2 AND id > 0")
    [entry] = deletes_of(handle)
    assert entry["record_count"] == 2
    assert (entry["status"], ids_of(handle)) == (ADDED, [0, 3, 4, 5, 6, 7, 8, 9])
    summary = head_of(handle).summary
    assert (summary["added-position-deletes"], summary["removed-position-deletes"]) == ("2", "1")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("1", "2")
    assert stored_files(storage) == referenced_files(handle)


def test_a_vector_has_the_positions_of_every_older_file_of_positions(storage):
    """A vector hides them, also those that it cannot remove because other files need them."""
    handle = filled(storage, 2)
    delete(handle, "id = 0")
    delete_by_position(handle, file_with(handle, 0), 1)  # may be of any file
    upgrade(handle)
    delete(handle, "id = 2")
    assert ids_of(handle) == [3, 4, 5, 6, 7, 8, 9]
    found = {each["file_format"]: each for each in deletes_of(handle)}
    assert found["PUFFIN"]["record_count"] == 3
    assert found["PARQUET"]["referenced_data_file"] is None
    assert head_of(handle).summary["removed-position-delete-files"] == "1"


@VERSIONS
def test_a_file_whose_last_rows_are_deleted_leaves_with_its_deletes(storage, version):
    handle = filled(storage, version)
    delete(handle, "id IN (1, 3)")
    report = delete(handle, "id IN (0, 2, 4)")
    assert (report.files_removed, deletes_of(handle)) == (1, [])
    summary = head_of(handle).summary
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("0", "0")
    assert ids_of(handle) == [5, 6, 7, 8, 9]


def test_a_row_that_a_key_deleted_is_not_deleted_again(storage):
    handle = filled(storage)
    delete_by_key(handle, 1)
    assert delete(handle, "id = 1").snapshot_id is None
    delete(handle, "id <= 2")
    positions = [each for each in deletes_of(handle) if each["content"] == 1]
    assert [each["record_count"] for each in positions] == [2]
    assert ids_of(handle) == [3, 4, 5, 6, 7, 8, 9]


@VERSIONS
def test_manifests_of_deletes_are_merged_as_those_of_data(storage, version):
    handle = filled(storage, version)
    often = {"commit.manifest.min-count-to-merge": "2"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, often))
    for number in (1, 6, 2):
        delete(handle, f"id = {number}")
    assert sorted(manifests_of(handle)["content"].to_pylist()) == [0, 1]
    assert [each["record_count"] for each in deletes_of(handle)] in ([2, 1], [1, 2])
    assert ids_of(handle) == [0, 3, 4, 5, 7, 8, 9]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_whole_files_and_single_rows_leave_in_one_commit(storage, version):
    handle = filled(storage, version)
    report = delete(handle, "id < 7")
    assert (report.files_removed, ids_of(handle)) == (1, [7, 8, 9])
    assert len(handle.load().metadata.snapshots) == 3


def test_nulls_and_unknown_answers_keep_their_rows(storage):
    handle = made_table(storage, 3)
    IcebergTable(handle).write(pa.table({"id": [1, 2, None], "k": ["a", None, "b"]}))
    delete(handle, "id <> 1 OR k = 'a'")
    left = IcebergTable(handle).scan(["id", "k"]).to_arrow().to_pylist()
    assert left == [{"id": None, "k": "b"}]


@VERSIONS
def test_manifests_of_data_files_are_read_once_to_plan(version):
    storage = CrashableStorage()
    handle = filled(storage, version)
    delete(handle, "id = 1")
    manifests = manifests_of(handle).to_pylist()
    [first, _] = [
        handle.load().places.place(each["manifest_path"])[1]
        for each in manifests
        if not each["content"]
    ]
    storage.log.clear()
    delete(handle, "id IN (2, 7)")
    reads = [each.operation for each in storage.log if each.path == first]
    assert reads in (["read"], ["open_input"])


# What other writers do meanwhile


def upgrade(handle: TableHandle) -> None:
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
    )


@VERSIONS
def test_two_deletes_of_one_file_at_once_lose_no_row_of_either(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: delete(other, "id = 1"))
    delete(handle, "id = 3")
    assert ids_of(handle) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert len(deletes_of(handle)) == 1
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_rows_of_a_file_that_a_compaction_replaced_are_found_again(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: IcebergTable(other).compact(rewrite_all=True))
    delete(handle, "id = 3")
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_a_compaction_that_was_planned_before_a_delete_brings_no_row_back(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: delete(other, "id IN (3, 7)"))
    report = IcebergTable(handle).compact(rewrite_all=True)
    assert (report.rounds, ids_of(handle)) == (2, [0, 1, 2, 4, 5, 6, 8, 9])
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_a_compaction_does_not_bring_back_a_file_that_was_deleted_whole(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: delete(other, "id < 5"))
    assert IcebergTable(handle).compact(rewrite_all=True).rounds == 2
    assert ids_of(handle) == [5, 6, 7, 8, 9]


@VERSIONS
def test_rows_that_are_overwritten_meanwhile_are_not_lost(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(3, 20), overwrite="table"))
    delete(handle, "id = 3")
    assert ids_of(handle) == [20]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
@pytest.mark.parametrize(("isolation", "left"), [("serializable", [4]), ("snapshot", [3, 4])])
def test_the_isolation_decides_about_rows_that_are_added_meanwhile(
    storage, version, isolation, left
):
    handle = made_table(storage, version)
    chosen = {"write.delete.isolation-level": isolation}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, chosen))
    IcebergTable(handle).write(rows(3, 4))
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(3)))
    delete(handle, "id = 3")
    assert ids_of(handle) == left


@VERSIONS
@pytest.mark.parametrize(("where", "left"), [("k = 'k1'", [4]), ("k = 'k1' AND id > 0", [4, 5])])
def test_rows_that_are_added_meanwhile_are_deleted_at_any_isolation_if_partitions_decide(
    storage, version, where, left
):
    isolation = {"write_delete_isolation-level": "snapshot"}
    handle = made_table(storage, version, partition={"k": "identity"}, **isolation)
    IcebergTable(handle).write(rows(3, 4))
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(5)))
    delete(handle, where)
    assert ids_of(handle) == left


def test_rows_that_cannot_meet_the_condition_are_no_conflict(storage):
    handle = filled(storage)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(30)))
    assert delete(handle, "id = 3").attempts == 1
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 30]


def test_an_upgrade_meanwhile_leads_to_vectors(storage):
    handle = filled(storage)
    meanwhile(handle, upgrade)
    delete(handle, "id = 3")
    assert [each["file_format"] for each in deletes_of(handle)] == ["PUFFIN"]
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_a_rollback_meanwhile_is_searched_again(storage, version):
    """The rows that it restores are deleted, too."""
    handle = filled(storage, version)
    before = head_of(handle).snapshot_id
    delete(handle, "id = 2")
    meanwhile(handle, lambda other: IcebergTable(other).rollback(snapshot=before))
    delete(handle, "id IN (2, 3)")
    assert ids_of(handle) == [0, 1, 4, 5, 6, 7, 8, 9]


# Once, or not at all


def test_the_same_identity_deletes_once(storage):
    handle, commit = filled(storage, 3), lake.CommitId("cleanup", 1)
    first = delete(handle, "id = 3", commit=commit)
    IcebergTable(handle).write(rows(3))
    again = delete(handle, "id = 3", commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert ids_of(handle) == [*range(10)]


def test_an_identity_that_another_process_publishes_first_leaves_no_file(storage):
    handle, commit = filled(storage, 3), lake.CommitId("cleanup", 1)
    meanwhile(handle, lambda other: delete(other, "id = 3", commit=commit))
    assert delete(handle, "id = 3", commit=commit).replayed
    assert stored_files(storage) == referenced_files(handle)


def test_no_file_is_left_after_the_last_conflict(storage):
    handle = filled(storage, 3)
    before = stored_files(storage)
    handle.pointer.publish = lambda base, metadata: None
    with pytest.raises(CommitConflictError, match="10 times in a row"):
        delete(handle, "id = 3")
    assert stored_files(storage) == before


def test_the_last_conflict_counts_the_attempts_of_all_commits(storage):
    handle = filled(storage, 3)
    handle.pointer.publish = lambda base, metadata: None
    with pytest.raises(
        CommitConflictError, match=r"came first in all 50 attempts.* first in each of 5 attempts"
    ) as refused:
        delete(handle, "id = 3")
    assert refused.value.attempts == 50


def test_files_are_kept_while_the_outcome_is_unknown(storage):
    handle = filled(storage, 3)
    before = stored_files(storage)

    def no_answer(base, metadata):
        raise CommitOutcomeUnknownError("no answer")

    handle.pointer.publish = no_answer
    with pytest.raises(CommitOutcomeUnknownError):
        delete(handle, "id = 3")
    assert any(each.endswith(".puffin") for each in stored_files(storage) - before)


@pytest.mark.sampled(1)
@VERSIONS
def test_a_fault_at_any_storage_call_deletes_the_rows_once_or_not_at_all(version):
    def start() -> CrashableStorage:
        found = CrashableStorage()
        delete(filled(found, version), "id = 1")
        return found

    def act(storage, acknowledged):
        handle = handle_on(storage, simulated(len(storage.files())))
        acknowledged.append(delete(handle, "id IN (3, 7)", commit=lake.CommitId("a", 1)).rows)

    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        left = ids_of(handle)
        assert left in ([0, 2, 3, 4, 5, 6, 7, 8, 9], [0, 2, 4, 5, 6, 8, 9]), trial
        assert not trial.acknowledged or 3 not in left, trial
        delete(handle, "id IN (3, 7)", commit=lake.CommitId("a", 1))
        assert ids_of(handle) == [0, 2, 4, 5, 6, 8, 9], trial
        assert len(handle.load().metadata.snapshots) == 4, trial
        assert referenced_files(handle) <= set(storage.files()), trial


def test_a_table_that_was_created_anew_meanwhile_keeps_its_rows(storage):
    handle = filled(storage)

    def create_anew(_):
        storage.delete_directory(ROOT)
        path_table(storage, **{"table-uuid": "other"})
        IcebergTable(handle_on(storage, simulated(9))).write(pa.table({"id": [1, 2]}))

    meanwhile(handle, create_anew)
    with pytest.raises(lake.TableReplacedError, match="was dropped and created again meanwhile"):
        delete(handle, "id = 2")
    assert ids_of(handle_on(storage)) == [1, 2]


@VERSIONS
def test_a_delete_that_may_not_write_its_file_logs_nothing(storage, version, caplog):
    handle = filled(storage, version)
    elsewhere = {"write.data.path": storage.uri("elsewhere")}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, elsewhere))
    with pytest.raises(InvalidRequestError, match="elsewhere"):
        delete(handle, "id = 3")
    assert caplog.messages == []
