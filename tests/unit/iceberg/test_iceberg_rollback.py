"""A rollback moves a branch back in its own history, and deletes nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lakeformat import CommitId
from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.iceberg.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.path_table import handle_on, names, path_table
from tests.unit.iceberg.references.test_tags_and_branches import add


@pytest.fixture
def storage() -> MemoryStorage:
    """A table with the snapshots 1, 2 and 3."""
    storage = MemoryStorage("rollback")
    path_table(storage)
    for number in (1, 2, 3):
        add(storage, number)
    return storage


def main(storage: MemoryStorage) -> list[str]:
    return names(handle_on(storage).load().metadata)


def at(storage: MemoryStorage, millis: int) -> IcebergTable:
    """The table as a process with another time on its clock has it."""
    return IcebergTable(handle_on(storage, Environment(now_millis=lambda: NOW_MILLIS + millis)))


@pytest.mark.parametrize(
    ("target", "left"),
    [
        ({"snapshot": 1}, ["s1"]),
        ({"tag": "second"}, ["s1", "s2"]),
        ({"as_of": NOW_MILLIS + 2}, ["s1", "s2"]),
    ],
    ids=["snapshot", "tag", "time"],
)
def test_a_branch_returns_to_a_snapshot_of_its_history(storage, target, left):
    table = at(storage, 100)
    table.tags.create("second", snapshot=2)
    planned = table.rollback(**target, dry_run=True)
    assert len(main(storage)) == 3
    report = table.rollback(**target)
    assert main(storage) == left
    assert report.snapshot_id == planned.snapshot_id == len(left)
    # Newer snapshots are kept, and a branch leads back to them.
    table.branches.create("back", snapshot=3)
    assert table.branches.fast_forward("back").snapshots == tuple(range(len(left) + 1, 4))
    assert main(storage) == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    "call",
    [
        lambda table, position: table.scan(snapshot=position),
        lambda table, position: table.tags.create("x", snapshot=position),
        lambda table, position: table.branches.create("x", snapshot=position),
        lambda table, position: table.stream("from-snapshot-full", snapshot=position),
        lambda table, position: table.cherry_pick(snapshot=position),
        lambda table, position: table.rollback(snapshot=position),
    ],
    ids=["scan", "tag", "branch", "stream", "cherry-pick", "rollback"],
)
def test_a_position_of_a_removed_snapshot_names_no_other_snapshot(storage, call):
    kept, removed, _ = (each.position for each in at(storage, 100).snapshots())
    assert removed.identity is not None
    at(storage, 100).rollback(snapshot=1)
    add(storage, 9)
    with pytest.raises(NotFoundError, match=r"belongs to a history that a rollback removed"):
        call(at(storage, 200), removed)
    assert main(storage) == ["s1", "s9"]
    without = at(storage, 200).position(removed.number)
    for name, position in (("kept", kept), ("without", without)):
        assert at(storage, 200).tags.create(name, snapshot=position).snapshot_id == 1


def test_the_report_names_what_is_left(storage):
    report = at(storage, 100).rollback(snapshot=1)
    newer = "2 newer snapshots are kept until they expire"
    shown = r"snapshot 1 \(sequence number 1, committed .*\)"
    assert re.fullmatch(f"branch 'main' returned to {shown}; {newer}", report.reason)
    assert re.search(f"is at {shown} already", at(storage, 100).rollback(snapshot=1).reason)


def test_the_log_never_goes_back_in_time(storage):
    """Java refuses such metadata, so a slow clock would make the table unreadable."""
    at(storage, -600_000).rollback(snapshot=1)
    log = [each.timestamp_ms for each in handle_on(storage).load().metadata.snapshot_log]
    assert log == sorted(log)


def test_a_snapshot_outside_of_the_history_is_refused(storage):
    table = at(storage, 100)
    table.branches.create("dev", snapshot=1)
    add(storage, 9, "dev")
    with pytest.raises(InvalidRequestError, match=r"snapshot 9 of .* is not in the history of bra"):
        table.rollback(snapshot=9)
    with pytest.raises(NotFoundError, match="has no snapshot 77"):
        table.rollback(snapshot=77)
    with pytest.raises(NotFoundError, match=r"has no snapshot of 2023-11-14 22:13:19\.999Z or"):
        table.rollback(as_of=NOW_MILLIS - 1)
    with pytest.raises(InvalidRequestError, match=r"exactly one of .*; got snapshot= and tag="):
        table.rollback(snapshot=1, tag="x")


def test_arguments_without_meaning_are_refused_by_name(storage):
    table = at(storage, 100)
    with pytest.raises(
        UnsupportedError, match=r"leave out as_latest=False \(--cut-history\) and force"
    ):
        table.rollback(snapshot=1, as_latest=False)
    with pytest.raises(UnsupportedError, match="have no watermarks"):
        table.rollback(watermark=1)


def test_a_repeated_rollback_keeps_the_commits_since(storage):
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 100)
    assert not at(storage, 150).rollback(snapshot=1, commit=commit).replayed
    add(storage, 200)
    repeated = at(storage, 300).rollback(snapshot=1, commit=commit)
    assert (repeated.replayed, main(storage)) == (True, ["s1", "s200"])
    assert not at(storage, 300).rollback(snapshot=1).replayed
    assert main(storage) == ["s1"]


def test_a_rollback_of_another_program_before_the_first_attempt_is_not_its_own(storage):
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 100)
    at(storage, 150).rollback(snapshot=1)
    add(storage, 200)
    commit = replace(commit, first_try_head=at(storage, 200).position().identity)
    report = at(storage, 300).rollback(snapshot=1, commit=commit)
    assert (report.replayed, main(storage)) == (False, ["s1"])
    add(storage, 400)
    repeated = at(storage, 500).rollback(snapshot=1, commit=commit)
    assert (repeated.replayed, main(storage)) == (True, ["s1", "s400"])


@pytest.mark.parametrize("head", ["1", "expired"])
def test_a_repeated_rollback_keeps_the_commits_since_for_each_head(storage, head):
    """The branch was at the target already, or the head of the first attempt has expired."""
    at(storage, 150).rollback(snapshot=1)
    add(storage, 200)
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 100, first_try_head=head)
    assert at(storage, 300).rollback(snapshot=1, commit=commit).replayed
    assert main(storage) == ["s1", "s200"]


def branch_at(storage: MemoryStorage, millis: int) -> IcebergTable:
    """The branch dev as a process with another time on its clock has it."""
    world = Environment(now_millis=lambda: NOW_MILLIS + millis)
    return IcebergTable(replace(handle_on(storage, world), branch="dev"))


def of_dev(storage: MemoryStorage) -> list[str]:
    return names(handle_on(storage).load().metadata, "dev")


def test_a_repeated_rollback_of_a_branch_keeps_the_commits_since(storage):
    at(storage, 50).branches.create("dev")
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 100)
    assert not branch_at(storage, 150).rollback(snapshot=1, commit=commit).replayed
    add(storage, 200, "dev")
    repeated = branch_at(storage, 300).rollback(snapshot=1, commit=commit)
    assert (repeated.replayed, of_dev(storage)) == (True, ["s1", "s200"])
    assert "'dev' was at snapshot 1 (" in repeated.reason
    assert "1 newer snapshot is kept, because later commits made it" in repeated.reason
    assert not branch_at(storage, 300).rollback(snapshot=1).replayed
    assert of_dev(storage) == ["s1"]


def test_a_rollback_of_a_branch_does_not_take_a_move_of_main_for_its_own(storage):
    at(storage, 50).branches.create("dev")
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 100)
    at(storage, 150).rollback(snapshot=1)
    report = branch_at(storage, 300).rollback(snapshot=1, commit=commit)
    assert (report.replayed, of_dev(storage)) == (False, ["s1"])


def test_a_branch_with_the_head_of_the_first_attempt_is_rolled_back(storage):
    """A writer with a fast clock made its commits later than the first attempt began."""
    at(storage, 50).branches.create("dev")
    commit = CommitId("run", 0, first_try_millis=NOW_MILLIS + 1)
    assert branch_at(storage, 300).rollback(snapshot=1, commit=commit, dry_run=True).replayed
    known = replace(commit, first_try_head="3")
    report = branch_at(storage, 300).rollback(snapshot=1, commit=known)
    assert (report.replayed, of_dev(storage)) == (False, ["s1"])
