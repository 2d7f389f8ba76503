"""An append adds files and a manifest to those of the newest snapshot, and publishes once."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.manifest import ADDED, EXISTING
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.updates import set_properties, set_reference
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import simulated
from tests.unit.iceberg.path_table import ROOT, handle_on, path_table
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


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "k": texts(*(f"k{each % 3}" for each in ids))}
    )


def texts(*values: str | None) -> pa.Array:
    return pa.array(values, pa.string())


@VERSIONS
def test_appended_rows_are_read(storage, version):
    handle = made_table(storage, version, partition={"k": "identity"})
    first = append(handle, rows(1, 2, 3))
    second = append(handle, rows(4))
    assert rows_of(handle) == rows(1, 2, 3, 4).to_pylist()
    assert (first.kind, first.rows, first.files) == ("append", 3, 3)
    assert (second.rows, second.files, second.attempts) == (1, 1, 1)
    assert head_of(handle).snapshot_id == second.snapshot_id
    assert stored_files(storage) == referenced_files(handle)


@VERSIONS
def test_the_summary_counts_the_change_and_the_whole_table(storage, version):
    handle = made_table(storage, version, partition={"k": "identity"})
    first = append(handle, rows(1, 2, 3), properties={"source": "s"})
    second = append(handle, rows(4, 7), commit=lake.CommitId("run", 3))
    assert dict(head_of(handle).summary) == {
        "operation": "append",
        "added-data-files": "1",
        "added-records": "2",
        "added-files-size": str(second.bytes),
        "changed-partition-count": "1",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "0",
        "total-data-files": "4",
        "total-records": "5",
        "total-files-size": str(first.bytes + second.bytes),
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
        "lake.commit-user": "run",
        "lake.commit-identifier": "3",
    }
    assert handle.load().metadata.snapshots[0].summary["source"] == "s"


def test_totals_that_the_last_summary_lacks_are_counted_anew(storage):
    handle = made_table(storage)
    append(handle, rows(1, 2))

    def without_totals(loaded):
        (only,) = loaded.metadata.snapshots
        bare = replace(only, summary={"operation": "append"})
        return replace(loaded.metadata, snapshots=(bare,))

    commit_metadata(handle, without_totals)
    append(handle, rows(3))
    assert head_of(handle).summary["total-records"] == "3"


def test_a_sequence_number_is_inherited_from_the_snapshot(storage):
    handle = made_table(storage)
    append(handle, rows(1))
    append(handle, rows(2))
    assert sorted(each["sequence_number"] for each in entries_of(handle)) == [1, 2]
    assert manifests_of(handle)["sequence_number"].to_pylist() == [2, 1]


def test_rows_of_version_3_get_ids_in_the_order_of_the_commits(storage):
    handle = made_table(storage, 3)
    append(handle, rows(1, 2, 3))
    append(handle, rows(4, 5))
    assert [each.first_row_id for each in handle.load().metadata.snapshots] == [0, 3]
    assert [each.added_rows for each in handle.load().metadata.snapshots] == [3, 2]
    assert handle.load().metadata.next_row_id == 5
    assert manifests_of(handle)["first_row_id"].to_pylist() == [3, 0]
    assert sorted(each["first_row_id"] for each in entries_of(handle)) == [0, 3]


def test_rows_written_before_an_upgrade_get_ids_with_the_first_commit_of_version_3(storage):
    handle = made_table(storage, 2)
    append(handle, rows(1, 2))
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
    )
    append(handle, rows(3))
    assert head_of(handle).added_rows == 3
    assert sorted(each["first_row_id"] for each in entries_of(handle)) == [0, 1]


def test_a_table_upgraded_from_version_1_keeps_its_files(storage):
    handle = made_table(storage, 1)
    append(handle, rows(1, 2))
    commit_metadata(handle, lambda loaded: replace(loaded.metadata, format_version=2))
    append(handle, rows(3))
    assert ids_of(handle) == [1, 2, 3]
    assert sorted(each["sequence_number"] for each in entries_of(handle)) == [0, 1]


MERGES_AT_3 = {"commit.manifest.min-count-to-merge": "3"}


@VERSIONS
def test_manifests_are_merged_once_there_are_many(storage, version):
    handle = made_table(storage, version)
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, MERGES_AT_3))
    for number in range(4):
        append(handle, rows(number))
    assert manifests_of(handle)["existing_files_count"].to_pylist() == [0, 2]
    assert manifests_of(handle)["added_files_count"].to_pylist() == [1, 1]
    status = {each["snapshot_id"]: each["status"] for each in entries_of(handle)}
    third = handle.load().metadata.snapshots[2].snapshot_id
    assert status.pop(third) == ADDED
    assert [*status.values()].count(EXISTING) == 2
    assert ids_of(handle) == [0, 1, 2, 3]
    assert stored_files(storage) == referenced_files(handle)


def test_row_ids_survive_a_merge_of_manifests(storage):
    handle = made_table(storage, 3)
    append(handle, rows(1, 2))
    append(handle, rows(3))
    before = {each["file_path"]: each["first_row_id"] for each in entries_of(handle)}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, MERGES_AT_3))
    append(handle, rows(4, 5))
    after = {each["file_path"]: each["first_row_id"] for each in entries_of(handle)}
    assert len(manifests_of(handle)) == 1
    assert before.items() <= after.items()
    new = (after.keys() - before).pop()
    assert after[new] >= 3


def test_merging_can_be_switched_off(storage):
    handle = made_table(storage)
    off = {**MERGES_AT_3, "commit.manifest-merge.enabled": "false"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, off))
    for number in range(5):
        append(handle, rows(number))
    assert len(manifests_of(handle)) == 5


def test_an_append_that_loses_is_made_again_with_the_same_files(storage):
    handle = made_table(storage)
    pending = [lambda: append(handle_on(storage, simulated(7)), rows(8, 9))]

    class Slow(type(handle.pointer)):
        def publish(self, base, metadata):
            while pending:
                pending.pop()()
            return super().publish(base, metadata)

    handle.pointer.__class__ = Slow
    report = append(handle, rows(1))
    assert report.attempts == 2
    assert ids_of(handle) == [1, 8, 9]
    assert head_of(handle).summary["total-records"] == "3"
    assert stored_files(storage) == referenced_files(handle)


def test_the_same_identity_publishes_once(storage):
    handle = made_table(storage)
    commit = lake.CommitId("run", 1)
    first = append(handle, rows(1), commit=commit)
    before = stored_files(storage)
    again = append(handle, rows(1), commit=commit)
    assert (again.replayed, again.snapshot_id, again.rows) == (True, first.snapshot_id, 1)
    assert stored_files(storage) == before
    assert ids_of(handle) == [1]


def test_files_are_removed_if_another_process_publishes_the_identity_first(storage):
    handle, commit = made_table(storage), lake.CommitId("run", 1)

    def batches():
        yield rows(1)
        append(handle_on(storage, simulated(7)), rows(1), commit=commit)

    assert append(handle, batches(), commit=commit).replayed
    assert ids_of(handle) == [1]
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize("commit", [None, lake.CommitId("run", 1)], ids=["plain", "identity"])
def test_an_attempt_that_was_published_in_spite_of_its_answer_keeps_its_files(storage, commit):
    handle = made_table(storage)
    publish, answers = handle.pointer.publish, [None]

    def refused_once(base, metadata):
        published = publish(base, metadata)
        return answers.pop() if answers else published

    handle.pointer.publish = refused_once
    report = append(handle, rows(1), commit=commit)
    assert (report.replayed, report.rows, ids_of(handle)) == (False, 1, [1])
    assert stored_files(storage) == referenced_files(handle)


def test_no_file_is_left_after_a_conflict(storage):
    handle = made_table(storage)
    handle.pointer.publish = lambda base, metadata: None
    with pytest.raises(CommitConflictError):
        append(handle, rows(1))
    assert stored_files(storage) == set()


def test_files_are_kept_while_the_outcome_is_unknown(storage):
    handle = made_table(storage)

    def no_answer(base, metadata):
        raise CommitOutcomeUnknownError("no answer")

    handle.pointer.publish = no_answer
    with pytest.raises(CommitOutcomeUnknownError):
        append(handle, rows(1))
    assert len(stored_files(storage)) == 3  # data file, manifest, list


def test_no_file_is_left_if_the_rows_end_with_an_error(storage):
    handle = made_table(storage, partition={"k": "identity"})

    def batches():
        yield rows(1, 2, 3)
        raise UnavailableError("the source is down")

    with pytest.raises(UnavailableError, match="the source is down"):
        append(handle, batches())
    assert stored_files(storage) == set()


def test_a_directory_outside_of_the_table_must_be_allowed(storage, caplog):
    handle = made_table(storage)
    elsewhere = {"write.data.path": storage.uri("elsewhere")}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, elsewhere))
    with pytest.raises(InvalidRequestError, match="elsewhere"):
        append(handle, rows(1))
    assert (stored_files(storage), caplog.messages) == (set(), [])


def test_no_message_shows_a_credential_that_another_program_stored_in_a_property(storage, caplog):
    handle = made_table(storage)
    stored = {"write.data.path": "hdfs://user:private@host/x"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, stored))
    with pytest.raises(InvalidRequestError, match=r"hdfs://…@host/x") as found:
        append(handle, rows(1))
    assert caplog.messages == []
    delete_files(handle.load().places, ["hdfs://user:private@host/x"])
    assert "could not delete the unpublished file hdfs://…@host/x" in caplog.text
    report = IcebergTable(handle).remove_orphans()
    assert report.external_paths_left_out == ("hdfs://…@host/x",)
    assert "private" not in f"{found.value}{caplog.text}{report}"


def test_threads_that_append_at_the_same_time_lose_nothing(storage):
    """Each has a handle of its own, as another process has it."""
    made_table(storage, 3)

    def write(worker: int) -> None:
        own = handle_on(storage, replace(simulated(worker), sleep_seconds=time.sleep))
        for number in range(3):
            append(own, rows(worker * 10 + number), commit=lake.CommitId(f"w{worker}", number))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(1, 4)))
    handle = handle_on(storage)
    assert ids_of(handle) == [10, 11, 12, 20, 21, 22, 30, 31, 32]
    assert head_of(handle).summary["total-records"] == "9"
    assert handle.load().metadata.next_row_id == 9
    assert stored_files(storage) == referenced_files(handle)


def test_rows_of_a_dropped_table_are_not_appended_to_one_that_was_created_anew(storage):
    handle = made_table(storage)

    def batches():
        yield pa.table({"id": [1], "k": ["a"]})
        storage.delete_directory(ROOT)
        path_table(storage, **{"table-uuid": "other"})
        append(handle_on(storage, simulated(7)), pa.table({"id": pa.array([2], pa.int32())}))

    with pytest.raises(CommitConflictError, match="was dropped and created again meanwhile"):
        append(handle, batches())
    assert rows_of(handle_on(storage)) == [{"id": 2}]


def test_rows_are_appended_to_a_branch(storage):
    main = made_table(storage)
    append(main, rows(1))
    fork = Reference("dev", head_of(main).snapshot_id, "branch")
    commit_metadata(main, lambda loaded: set_reference(loaded.metadata, fork, 1))
    dev = replace(main, branch="dev")
    append(dev, rows(2))
    assert (ids_of(dev), ids_of(main)) == ([1, 2], [1])


def test_a_branch_that_was_deleted_is_an_error(storage):
    gone = replace(made_table(storage), branch="dev")
    with pytest.raises(NotFoundError, match=r"branch 'dev' of .* was deleted"):
        append(gone, rows(1))
    assert stored_files(storage) == set()


def test_without_rows_nothing_is_published(storage):
    report = append(made_table(storage), rows())
    assert (report.snapshot_id, report.reason) == (
        None,
        "no rows to add or to remove, so no snapshot was published",
    )
    assert stored_files(storage) == set()


@pytest.mark.parametrize("key", ["operation", "total-records", "lake.commit-user"])
def test_properties_do_not_replace_what_the_commit_notes(storage, key):
    handle = made_table(storage)
    with pytest.raises(InvalidRequestError, match=f"properties must not have '{key}'"):
        append(handle, rows(1), properties={key: "x"}, commit=lake.CommitId("u", 1))
    assert stored_files(storage) == set()


def test_properties_are_texts(storage):
    with pytest.raises(InvalidRequestError, match="'batch' is 3: write it as text"):
        append(made_table(storage), rows(1), properties={"batch": 3})


REFUSED = {
    "kinds": ["+I"],
    "watermark": 3,
    "read_snapshot": 3,
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_without_meaning_are_refused_by_name(storage, name):
    table = IcebergTable(made_table(storage))
    with pytest.raises(UnsupportedError, match=f"does not take {name}: "):
        table.write(rows(1), **{name: REFUSED[name]})
    with pytest.raises(InvalidRequestError, match="no argument 'comit'; did you mean 'commit'"):
        table.write(rows(1), comit=3)


BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["a", "b", None])), max_size=5),
    max_size=6,
)


@settings(max_examples=10)
@given(BATCHES, st.sampled_from([1, 2, 3]), st.sampled_from(["identity", "truncate[1]", "void"]))
def test_random_appends_leave_all_rows(batches, version, transform):
    """The model is a list: after each append the table has exactly the rows so far."""
    handle = made_table(MemoryStorage("t"), version, partition={"k": transform})
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, MERGES_AT_3))
    expected = []
    for batch in batches:
        given_rows = [{"id": number, "k": text} for number, text in batch]
        append(handle, pa.Table.from_pylist(given_rows, rows().schema))
        expected += given_rows
    found = IcebergTable(handle).scan().to_arrow().to_pylist()
    as_text = json.dumps
    assert sorted(map(as_text, found)) == sorted(map(as_text, expected))


@pytest.mark.parametrize("days", [-3_000_000, 4_000_000], ids=["before year 1", "after year 9999"])
def test_a_partition_may_be_a_day_that_python_has_not(tmp_path, days):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.days", [("d", "DATE")], partition_by=["d"])
    rows = pa.table({"d": pa.array([days, days, 0], pa.int32()).cast(pa.date32())})

    table.write(rows)

    read = table.scan().to_arrow()["d"].combine_chunks().cast(pa.int32())
    assert sorted(read.to_pylist()) == sorted([days, days, 0])
    assert table.latest_snapshot().summary["changed-partition-count"] == "2"
