"""A compaction changes files, never rows: also if rows are added or deleted meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CommitConflictError, CommitOutcomeUnknownError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, DELETED, EQUALITY_DELETES
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.updates import set_properties, set_reference
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
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
    manifests_of,
    referenced_files,
    rows_of,
    stored_files,
)

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])
ALL = {"rewrite_all": True}


def rows(*ids: int) -> pa.Table:
    texts = [f"k{each % 2}" for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})


def filled(storage, version: int = 2, **more) -> TableHandle:
    """Three commits of two rows each: 0 and 1, 2 and 3, 4 and 5."""
    handle = made_table(storage, version, **more)
    for first in (0, 2, 4):
        IcebergTable(handle).write(rows(first, first + 1))
    return handle


def live_data(handle: TableHandle) -> list[dict[str, Any]]:
    """The entries of the data files."""
    entries = entries_of(handle)
    return [each for each in entries if each["status"] != DELETED and each["content"] == DATA]


def file_with(handle: TableHandle, first: int) -> str:
    """The path of the file whose first row is the one with this id."""
    bound = first.to_bytes(8, "little")
    [found] = [each for each in live_data(handle) if dict(each["lower_bounds"])[1] == bound]
    return str(found["file_path"])


def compact(handle: TableHandle, **options):
    return IcebergTable(handle).compact(**{**ALL, **options})


@VERSIONS
def test_small_files_of_a_partition_become_one(storage, version):
    handle = filled(storage, version, partition={"k": "identity"})
    before = rows_of(handle)
    report = compact(handle)
    assert rows_of(handle) == before
    assert len(live_data(handle)) == 2
    assert (report.files_in, report.files_out, report.rows_in, report.rows_out) == (6, 2, 6, 6)
    assert {each.partition for each in report.groups} == {"k_part=k0", "k_part=k1"}
    assert report.snapshot_ids == (head_of(handle).snapshot_id,)
    assert stored_files(storage) == referenced_files(handle)


def test_a_plan_shows_what_would_be_done_and_changes_nothing(storage):
    handle = filled(storage)
    before = stored_files(storage)
    plan = IcebergTable(handle).plan_compaction(min_input_files=3)
    assert str(plan).splitlines() == [
        f"minor compaction of {handle.uri} at snapshot {plan.snapshot_id}: 1 group",
        f"  3 files become about 1, {plan.bytes / 1024:.1f} KiB to read: "
        "3 files, at least min_input_files=3",
    ]
    assert plan.to_dict()["groups"][0]["files"] == 3
    assert "not chosen: only 3 small files" in str(IcebergTable(handle).plan_compaction())
    assert stored_files(storage) == before


def test_nothing_is_published_if_no_group_is_due(storage):
    handle = filled(storage)
    head = head_of(handle)
    report = compact(handle, rewrite_all=False)
    assert (report.snapshot_ids, report.files_in) == ((), 0)
    assert [each.outcome for each in report.groups] == ["not chosen"]
    assert head_of(handle) == head


def test_a_table_without_rows_has_nothing_to_do(storage):
    assert compact(made_table(storage)).snapshot_ids == ()


@VERSIONS
def test_rows_that_are_appended_meanwhile_are_kept(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(8)))
    report = compact(handle)
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5, 8]
    assert (report.rounds, report.files_in) == (1, 3)
    assert head_of(handle).operation == "replace"
    assert head_of(handle).summary["total-records"] == "7"
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_are_deleted_by_position_meanwhile_do_not_come_back(storage, version):
    handle = filled(storage, version)
    delete = delete_by_position if version == 2 else delete_by_vector
    meanwhile(handle, lambda other: delete(other, file_with(other, 2), 1))
    report = compact(handle)
    assert report.rounds == 2
    assert ids_of(handle) == [0, 1, 2, 4, 5]
    assert stored_files(storage) == referenced_files(handle)


def test_deletes_of_other_files_are_no_conflict(storage):
    handle = filled(storage, 3)
    meanwhile(handle, lambda other: delete_by_vector(other, file_with(other, 2), 1))
    report = compact(handle, where="id >= 4")
    assert (report.rounds, report.files_in) == (1, 1)
    assert ids_of(handle) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_are_deleted_by_value_meanwhile_do_not_come_back(storage, version):
    handle = filled(storage, version)
    meanwhile(handle, lambda other: delete_by_key(other, 0, 3))
    report = compact(handle)
    assert report.rounds == 1, "the new files are older than the delete, which applies to them"
    assert ids_of(handle) == [1, 2, 4, 5]
    assert compact(handle).rows_out == 4
    assert ids_of(handle) == [1, 2, 4, 5]
    assert stored_files(storage) == referenced_files(handle)


def test_rows_inserted_again_after_a_delete_by_value_are_kept(storage):
    handle = filled(storage)
    delete_by_key(handle, 0)
    IcebergTable(handle).write(rows(0))
    meanwhile(handle, lambda other: (delete_by_key(other, 1), IcebergTable(other).write(rows(1))))
    compact(handle)
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5]
    deletes = [each for each in entries_of(handle) if each["content"] == EQUALITY_DELETES]
    assert [each["status"] for each in deletes] == [ADDED, DELETED], "only the newer one applies"


def test_a_delete_by_value_in_an_older_spec_is_a_conflict(storage):
    """The delete belongs to a partition of the old spec, in which the new files are not."""
    handle = filled(storage, partition={"k": "identity"})
    partition_by(handle, PartitionField((1,), 1001, "id_part", "identity"))
    meanwhile(handle, lambda other: delete_by_key(other, 0, partition={"k_part": "k0"}))
    report = compact(handle)
    assert report.rounds == 2
    assert ids_of(handle) == [1, 2, 3, 4, 5]
    assert {each["spec_id"] for each in live_data(handle)} == {1}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("before", [{}, {"id": "bucket[2]"}])
def test_a_delete_by_value_in_the_new_place_of_older_files_is_a_conflict(storage, before, version):
    """The delete does not apply to the old files, and must not apply to their rows later."""
    handle = filled(storage, version, partition=before)
    partition_by(handle, PartitionField((2,), 1001, "new_k", "identity"))
    meanwhile(handle, lambda other: delete_by_key(other, 0, partition={"new_k": "k0"}, spec_id=1))
    report = compact(handle)
    assert report.rounds == 2
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5]
    assert {each["spec_id"] for each in live_data(handle)} == {1}


@pytest.mark.parametrize(
    ("place", "fields"), [({"new_k": "other"}, [(2, "new_k", "identity")]), ({}, [])]
)
def test_deletes_by_value_elsewhere_or_everywhere_are_no_conflict_for_older_files(
    storage, place, fields
):
    handle = filled(storage, partition={"id": "bucket[2]"})
    partition_by(handle, *(PartitionField((id,), 1001, *rest) for id, *rest in fields))
    meanwhile(handle, lambda other: delete_by_key(other, 0, partition=place, spec_id=1))
    assert compact(handle).rounds == 1
    assert ids_of(handle) == ([0, 1, 2, 3, 4, 5] if place else [1, 2, 3, 4, 5])


def test_deletes_by_value_in_partitions_without_older_files_are_no_conflict(storage):
    """The files of the older spec, in other partitions, are replaced in the same commit."""
    handle = filled(storage, partition={"id": "bucket[2]"})
    partition_by(handle, PartitionField((2,), 1001, "new_k", "identity"))
    for each in (10, 11):
        IcebergTable(handle).write(pa.table({"id": pa.array([each], pa.int64()), "k": ["z"]}))
    meanwhile(handle, lambda other: delete_by_key(other, 10, partition={"new_k": "z"}, spec_id=1))
    assert compact(handle).rounds == 1
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5, 11]


def partition_by(handle: TableHandle, *fields: PartitionField) -> None:
    """Give the table a new partition spec, with the id 1."""

    def with_new_spec(loaded):
        specs = (*loaded.metadata.partition_specs, PartitionSpec(1, fields))
        return replace(
            loaded.metadata, partition_specs=specs, default_spec_id=1, last_partition_id=1001
        )

    commit_metadata(handle, with_new_spec)


def test_files_that_another_compaction_replaced_are_planned_again(storage):
    handle = filled(storage)
    meanwhile(handle, lambda other: compact(other))
    report = compact(handle)
    assert (report.rounds, report.files_in) == (2, 1)
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5]
    assert stored_files(storage) == referenced_files(handle)


def test_a_rollback_meanwhile_is_a_conflict(storage):
    """Rows that the rollback restores are in files that the compaction read without them."""
    handle = filled(storage)
    before = head_of(handle).snapshot_id
    delete_by_key(handle, 0)
    meanwhile(handle, lambda other: IcebergTable(other).rollback(snapshot=before))
    report = compact(handle)
    assert report.rounds == 2
    assert ids_of(handle) == [0, 1, 2, 3, 4, 5]


def test_only_the_files_of_a_condition_are_rewritten_with_all_their_rows(storage):
    handle = filled(storage)
    delete_by_key(handle, 0)  # outside of the condition, but in the same file
    report = compact(handle, where="id = 1")
    assert (report.files_in, report.rows_out) == (1, 1)
    assert ids_of(handle) == [1, 2, 3, 4, 5]


def test_partitions_are_chosen_by_name(storage):
    handle = filled(storage, partition={"k": "identity"})
    report = compact(handle, partitions={"k": "k1"})
    assert [each.partition for each in report.groups] == ["k_part=k1"]
    assert len(live_data(handle)) == 4


def test_rows_keep_their_ids_and_the_numbers_of_their_changes(storage):
    handle = filled(storage, 3)
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]

    def found():
        return IcebergTable(handle).scan(lineage).to_arrow().sort_by("id").to_pylist()

    before = found()
    compact(handle)
    IcebergTable(handle).write(rows(6))
    assert found()[:-1] == before
    assert found()[-1]["_row_id"] > max(each["_row_id"] for each in before)
    compact(handle)
    assert found()[:-1] == before


def test_a_merge_of_manifests_keeps_the_number_of_new_files(storage):
    handle = filled(storage)
    often = {"commit.manifest.min-count-to-merge": "1"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, often))
    delete_by_key(handle, 5)
    meanwhile(handle, lambda other: delete_by_key(other, 0))
    compact(handle)
    assert manifests_of(handle)["content"].to_pylist().count(DATA) == 1
    assert ids_of(handle) == [1, 2, 3, 4]


def test_a_table_whose_rows_are_all_deleted_gets_no_file(storage):
    handle = filled(storage)
    delete_by_key(handle, 0, 1, 2, 3, 4, 5)
    report = compact(handle)
    assert (report.files_out, report.rows_out) == (0, 0)
    assert ids_of(handle) == []


def test_the_same_identity_publishes_once(storage):
    handle, commit = filled(storage), lake.CommitId("nightly", 1)
    first = compact(handle, commit=commit)
    again = compact(handle, commit=commit)
    assert (again.snapshot_ids, again.earlier_snapshot_ids) == ((), first.snapshot_ids)
    assert head_of(handle).snapshot_id == first.snapshot_ids[0]


def test_an_identity_that_another_process_publishes_first_leaves_no_file(storage):
    handle, commit = filled(storage), lake.CommitId("nightly", 1)
    meanwhile(handle, lambda other: compact(other, commit=commit))
    report = compact(handle, commit=commit)
    assert report.earlier_snapshot_ids == (head_of(handle).snapshot_id,)
    assert stored_files(storage) == referenced_files(handle)


def test_no_file_is_left_after_the_last_conflict(storage):
    handle = filled(storage)
    before = stored_files(storage)
    handle.pointer.publish = lambda base, metadata: None
    with pytest.raises(CommitConflictError, match="10 times in a row"):
        compact(handle)
    assert stored_files(storage) == before


def test_files_are_kept_while_the_outcome_is_unknown(storage):
    handle = filled(storage)
    before = stored_files(storage)

    def no_answer(base, metadata):
        raise CommitOutcomeUnknownError("no answer")

    handle.pointer.publish = no_answer
    with pytest.raises(CommitOutcomeUnknownError):
        compact(handle)
    assert any(each.endswith(".parquet") for each in stored_files(storage) - before)


def test_threads_rewrite_the_same_rows(storage):
    handle = filled(storage, partition={"k": "identity"})
    before = rows_of(handle)
    assert compact(handle, executor="threads").files_out == 2
    assert rows_of(handle) == before


def test_a_fault_at_any_storage_call_changes_no_row():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        handle = filled(found)
        delete_by_key(handle, 0)
        return found

    def act(storage, acknowledged):
        handle = handle_on(storage, simulated(len(storage.files())))
        acknowledged.append(compact(handle, commit=lake.CommitId("nightly", 1)).files_out)

    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        assert ids_of(handle) == [1, 2, 3, 4, 5], trial
        compact(handle, commit=lake.CommitId("nightly", 1))
        assert ids_of(handle) == [1, 2, 3, 4, 5], trial
        replaced = [
            each for each in handle.load().metadata.snapshots if each.operation == "replace"
        ]
        assert len(replaced) == 1, trial
        assert referenced_files(handle) <= set(storage.files()), trial


def test_a_full_compaction_joins_what_it_can_and_then_has_nothing_to_do(storage):
    handle = filled(storage, partition={"k": "identity"})
    delete_by_key(handle, 5, partition={"k_part": "k1"})
    report = compact(handle, rewrite_all=False, strategy="full")
    assert (report.files_in, report.files_out, report.rows_out) == (6, 2, 5)
    assert compact(handle, rewrite_all=False, strategy="full").snapshot_ids == ()
    assert ids_of(handle) == [0, 1, 2, 3, 4]


def test_rows_are_not_sorted_and_files_have_no_sort_order(storage):
    """A file of several sorted ones is not sorted as a whole."""
    handle = filled(storage)
    order = SortOrder(1, (SortField((1,), "identity", "asc", "nulls-first"),))

    def sorted_by_id(loaded):
        return replace(loaded.metadata, sort_orders=(order,), default_sort_order_id=1)

    commit_metadata(handle, sorted_by_id)
    compact(handle)
    assert [each["sort_order_id"] for each in live_data(handle)] == [0]


def test_progress_is_reported_group_by_group(storage):
    handle = filled(storage, partition={"k": "identity"})
    seen = []
    compact(handle, on_progress=seen.append)
    assert [(each.units, each.done) for each in seen] == [(2, 0), (2, 1), (2, 2)]
    assert seen[-1].bytes == seen[-1].bytes_done


def test_a_choice_without_files_is_explained(storage):
    table = IcebergTable(filled(storage, partition={"k": "identity"}))
    assert table.explain_empty_choice(partitions={"k": "k1"}) is None
    assert table.explain_empty_choice() is None
    found = str(table.explain_empty_choice(partitions={"k": "z"}))
    assert "can match partitions={'k': 'z'}: check the names and values" in found
    found = str(table.explain_empty_choice(where="id < 0", partitions={"k": "k1"}))
    assert "can match where='id < 0' and partitions={'k': 'k1'}: check the names" in found


def test_a_branch_is_compacted_alone(storage):
    handle = filled(storage)
    main = head_of(handle)
    fork = Reference("dev", main.snapshot_id, "branch")
    commit_metadata(handle, lambda loaded: set_reference(loaded.metadata, fork, 1))
    dev = replace(handle, branch="dev")
    IcebergTable(dev).write(rows(6))
    assert compact(dev).files_in == 4
    assert (ids_of(dev), head_of(handle)) == ([0, 1, 2, 3, 4, 5, 6], main)


def test_an_upgrade_meanwhile_is_a_conflict(storage):
    """Rows of version 2 have no ids, which rows of version 3 keep."""
    handle = filled(storage)

    def upgrade(other):
        commit_metadata(
            other, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
        )
        IcebergTable(other).write(rows(6))

    meanwhile(handle, upgrade)
    assert compact(handle).rounds == 2
    found = IcebergTable(handle).scan(["id", "_row_id"]).to_arrow().sort_by("id").to_pylist()
    assert [each["id"] for each in found] == [0, 1, 2, 3, 4, 5, 6]
    assert sorted(each["_row_id"] for each in found) == [0, 1, 2, 3, 4, 5, 6]


def test_columns_that_were_changed_since_are_written_as_they_are_now(storage):
    handle = filled(storage)
    before = rows_of(handle)

    def with_new_column(loaded):
        old = loaded.metadata.schema
        id_field, text = old.fields
        fields = (id_field, replace(text, name="text"), Field(3, "n", PrimitiveType("long")))
        new = replace(old, schema_id=1, fields=fields)
        schemas = (*loaded.metadata.schemas, new)
        return replace(loaded.metadata, schemas=schemas, current_schema_id=1, last_column_id=3)

    commit_metadata(handle, with_new_column)
    compact(handle)
    expected = [{"id": each["id"], "text": each["k"], "n": None} for each in before]
    assert rows_of(handle) == expected
    [file] = live_data(handle)
    assert sorted(dict(file["value_counts"])) == [1, 2, 3]
