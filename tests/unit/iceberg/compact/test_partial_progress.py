"""Partial progress: groups are published as they are done; one that conflicts is dropped alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError, UnavailableError
from lakeformat.executor import outcomes_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.run import unit_work
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    ids_of,
    made_table,
    referenced_files,
    stored_files,
)

GROUPS = ["a", "b", "c", "d"]
ROWS = [*range(8), *range(10, 18)]
NIGHTLY = lake.CommitId("nightly", 1)


def filled(storage, groups: Sequence[str] = GROUPS) -> TableHandle:
    """Partitions with two files of two rows each: those of a begin with 0 and 10."""
    handle = made_table(storage, partition={"k": "identity"})
    for first in (0, 10):
        names = [*groups, *groups]
        ids = pa.array(range(first, first + len(names)), pa.int64())
        IcebergTable(handle).write(pa.table({"id": ids, "k": names}))
    return handle


def compact(handle: TableHandle, **options):
    how = {"rewrite_all": True, "max_commits": 4, "executor": "serial"}
    return IcebergTable(handle).compact(**{**how, **options})


def files_of(handle: TableHandle, group: str) -> list[str]:
    return [
        each["file_path"]
        for each in entries_of(handle)
        if each["status"] != 2 and each["content"] == 0 and f"k_part={group}/" in each["file_path"]
    ]


def replacements(handle: TableHandle) -> int:
    return sum(each.operation == "replace" for each in handle.load().metadata.snapshots)


def before_commit(handle: TableHandle, number: int, act: Callable[[TableHandle], object]) -> None:
    """Let another process act before a publication of this handle, counted from 1."""
    count = [0]

    class Slow(type(handle.pointer)):
        def publish(self, base, metadata):
            count[0] += 1
            if count[0] == number:
                act(handle_on(handle.pointer._storage, simulated(7)))
            return super().publish(base, metadata)

    handle.pointer.__class__ = Slow


@pytest.mark.parametrize(
    ("options", "commits"),
    [
        ({"max_commits": 1}, 1),
        ({"max_commits": 2}, 2),
        ({"max_commits": 3}, 2),
        ({"max_commits": None}, 1),
        ({"max_commits": None, "partial_progress": True}, 4),
    ],
)
def test_groups_are_published_in_at_most_so_many_commits(storage, options, commits):
    handle = filled(storage)
    before = ids_of(handle)
    report = compact(handle, **options)
    assert len(report.snapshot_ids) == replacements(handle) == commits
    assert (report.files_in, report.files_out, report.unfinished) == (8, 4, None)
    assert ids_of(handle) == before
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize(("most", "number"), [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2)])
def test_a_group_whose_rows_were_deleted_meanwhile_is_dropped_alone(storage, most, number):
    handle = filled(storage)
    kept = files_of(handle, "d")
    before_commit(handle, number, lambda other: IcebergTable(other).delete("id = 3"))
    report = compact(handle, max_commits=most)
    assert [(each.partition, each.outcome) for each in report.groups] == [
        *((f"k_part={group}", "compacted") for group in "abc"),
        ("k_part=d", "dropped"),
    ]
    assert files_of(handle, "d") == kept
    assert [len(files_of(handle, group)) for group in "abc"] == [1, 1, 1]
    assert ids_of(handle) == [each for each in ROWS if each != 3]
    assert report.unfinished in report.reason
    assert report.unfinished.startswith("1 of 4 groups kept the old files, because other commits")
    assert stored_files(storage) == referenced_files(handle)


def test_deletes_by_value_meanwhile_are_no_conflict_and_no_row_comes_back(storage):
    handle = filled(storage)
    delete = lambda other: delete_by_key(other, 13, partition={"k_part": "d"})  # noqa: E731
    before_commit(handle, 2, delete)
    assert compact(handle).unfinished is None
    assert 13 not in ids_of(handle)


def test_groups_that_were_published_before_an_error_stay_and_are_reported(storage):
    handle = filled(storage)
    publish, calls = handle.pointer.publish, []

    def failing(base, metadata):
        calls.append(metadata)
        if len(calls) == 3:
            raise UnavailableError("the storage is down")
        return publish(base, metadata)

    handle.pointer.publish = failing
    with pytest.raises(UnavailableError) as raised:
        compact(handle)
    assert raised.value.report.files_in == 4
    assert "because the compaction ended before" in raised.value.report.unfinished
    assert replacements(handle) == 2
    assert stored_files(storage) == referenced_files(handle)


def test_a_retry_replaces_only_what_the_first_attempt_left(storage):
    handle = filled(storage)
    before_commit(handle, 1, lambda other: IcebergTable(other).delete("id = 2"))
    first = compact(handle, commit=NIGHTLY)
    again = compact(handle, commit=NIGHTLY)
    assert (first.files_in, again.files_in) == (6, 2)
    assert again.earlier_snapshot_ids == first.snapshot_ids
    last = compact(handle, commit=NIGHTLY)
    assert (last.snapshot_ids, last.earlier_snapshot_ids) == ((), again.snapshot_ids)
    assert compact(handle, commit=lake.CommitId("nightly", 2)).files_in == 4


def test_groups_that_another_process_published_meanwhile_are_reported_as_its_work(storage):
    """Two tries of one task run at once: the second one completes what the first one has begun."""
    handle = filled(storage)
    other = []
    run = lambda handle: other.append(compact(handle, commit=NIGHTLY))  # noqa: E731
    before_commit(handle, 4, run)
    report = compact(handle, commit=NIGHTLY)
    [completed] = other[0].snapshot_ids
    assert [(each.partition, each.outcome) for each in report.groups] == [
        *((f"k_part={group}", "compacted") for group in "abc"),
        ("k_part=d", "already published"),
    ]
    assert (report.files_in, report.files_out, report.unfinished) == (6, 3, None)
    assert completed not in report.snapshot_ids
    assert report.earlier_snapshot_ids == (completed,)
    assert report.reason.endswith(f"; 1 group already published as snapshot {completed}")
    assert ids_of(handle) == ROWS
    assert replacements(handle) == 4
    assert stored_files(storage) == referenced_files(handle)


def test_after_a_fault_at_any_storage_call_a_retry_completes_the_work():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        filled(found, "ab")
        return found

    def act(storage, acknowledged):
        handle = handle_on(storage, simulated(len(storage.files())))
        acknowledged.append(compact(handle, commit=NIGHTLY).files_out)

    rows = [0, 1, 2, 3, 10, 11, 12, 13]
    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        assert ids_of(handle) == rows, trial
        left = [group for group in "ab" if len(files_of(handle, group)) == 2]
        assert compact(handle, commit=NIGHTLY).files_in == 2 * len(left), trial
        assert ids_of(handle) == rows, trial
        assert replacements(handle) == 2, trial
        assert referenced_files(handle) <= set(storage.files()), trial


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("none", "bca"),
        ("bytes-asc", "cab"),
        ("bytes-desc", "bac"),
        ("files-asc", "cab"),
        ("files-desc", "bca"),
    ],
)
def test_groups_are_rewritten_in_the_order_that_was_asked_for(storage, order, expected):
    handle = made_table(storage, partition={"k": "identity"})
    for group, size in (("a", 50), ("b", 60), ("c", 1), ("b", 60)):
        ids = pa.array(range(size), pa.int64())
        IcebergTable(handle).write(pa.table({"id": ids, "k": [group] * size}))
    plan = IcebergTable(handle).plan_compaction(rewrite_all=True, rewrite_job_order=order)
    assert "".join(each.partition[-1] for each in plan.units) == expected


@pytest.mark.parametrize("options", [{"strategy": "full"}, {"order_by": ["id"]}])
def test_a_group_that_is_given_up_stops_between_two_batches(storage, options):
    handle = filled(storage)
    plan = IcebergTable(handle).plan_compaction(**options)
    work = unit_work(plan, replace(handle.environment, is_given_up=lambda: True))
    with pytest.raises(lake.LakeError, match="was cancelled"):
        work(plan.units[0])
    assert stored_files(storage) == referenced_files(handle)


def test_as_many_groups_are_rewritten_at_a_time_as_asked_for():
    running, most = [0], [0]

    def work(unit: int) -> int:
        running[0] += 1
        most[0] = max(most[0], running[0])
        for _ in range(1000):
            pass
        running[0] -= 1
        return unit

    assert sorted(outcomes_of("threads", work, range(20), at_a_time=1)) == [*range(20)]
    assert most == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_commits": 0}, "max_commits must be at least 1, got 0"),
        ({"max_concurrent_rewrites": 0}, "max_concurrent_rewrites must be at least 1, got 0"),
        ({"rewrite_job_order": "size"}, "bytes-asc, bytes-desc, files-asc, files-desc, got 'size'"),
    ],
)
def test_limits_that_make_no_sense_are_refused_by_name(storage, options, message):
    with pytest.raises(InvalidRequestError, match=message):
        compact(made_table(storage), **options)
