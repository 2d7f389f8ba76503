"""Tags, branches and rollbacks meet expiry and the deletion of tags at every storage call.

A new reference to an expiring snapshot is refused, or complete.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.branch_directory import unfinished_branches
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.read.plan import plan_files
from lakeformat.testing import CrashableStorage
from tests.crash.test_references import LAYOUT, filled, opened, rows, write
from tests.expired import missing
from tests.sampling import IS_WHOLE, sampled_moments

Act = Callable[[lake.Table], object]


class Meeting(CrashableStorage):
    """Lets another actor run at one of its calls, on the same disk."""

    def __init__(self, start: CrashableStorage, at: int, act: Act) -> None:
        super().__init__()
        self._disk = start.reopened()._disk
        self._at, self._act = at, act
        self.refused: lake.LakeError | None = None
        self.met = False

    def _call(self, operation, path, act, torn=None):
        if not self.met and len(self.log) + 1 == self._at:
            self.met = True
            try:
                self._act(opened(self))
            except lake.LakeError as error:
                self.refused = error
        return super()._call(operation, path, act, torn)


def expire(table: lake.Table) -> None:
    table.expire_snapshots(retain_max=1, retain_min=1)


def delete_tag(table: lake.Table) -> None:
    table.tags.delete("two")


def fast_forward(table: lake.Table) -> None:
    table.branches.fast_forward("dev")


MEETINGS: dict[str, tuple[Act, Act]] = {
    "expiry, tag": (expire, lambda t: t.tags.create("new", snapshot=5)),
    "expiry, branch": (expire, lambda t: t.branches.create("new", snapshot=5)),
    "expiry, rollback": (expire, lambda t: t.rollback(snapshot=5, as_latest=True)),
    "expiry, deletion of a tag": (expire, delete_tag),
    "deletion, tag": (delete_tag, lambda t: t.tags.create("new", tag="two")),
    "deletion, branch": (delete_tag, lambda t: t.branches.create("new", tag="two")),
    "deletion, rollback as latest": (delete_tag, lambda t: t.rollback(tag="two", as_latest=True)),
    "deletion, rollback": (
        delete_tag,
        lambda t: t.rollback(tag="two", force=True, as_latest=False),
    ),
    "health, deletion of a branch": (
        lambda t: t.health(unknown=True),
        lambda t: t.branches.delete("old"),
    ),
    "deletion, expiry": (delete_tag, expire),
    "deletion, deletion": (delete_tag, delete_tag),
    "tag, deletion": (lambda t: t.tags.create("new", tag="two"), delete_tag),
    "tag, expiry": (lambda t: t.tags.create("new", snapshot=5), expire),
    "branch, deletion": (lambda t: t.branches.create("new", tag="two"), delete_tag),
    "branch, expiry": (lambda t: t.branches.create("new", snapshot=5), expire),
    "rollback as latest, deletion": (lambda t: t.rollback(tag="two", as_latest=True), delete_tag),
    "rollback, deletion": (
        lambda t: t.rollback(tag="two", force=True, as_latest=False),
        delete_tag,
    ),
    "rollback, expiry": (lambda t: t.rollback(snapshot=5, force=True, as_latest=False), expire),
}
POSSIBLE = (lake.CommitConflictError, lake.NotFoundError, lake.InvalidRequestError)


def moments(start: CrashableStorage, act: Act, most: int | None = None) -> list[int]:
    """The calls of an act that nothing disturbs, of which some are met."""
    alone = start.reopened()
    act(opened(alone))
    calls = [(call.operation, call.path) for call in alone.log]
    assert len(calls) > 3
    return sampled_moments(calls, most)


def complete(storage) -> None:
    """Everything that has a name can be read, to its last file."""
    table = opened(storage)
    for each in [table, *(opened(storage, one.name) for one in table.branches.list())]:
        rows(each)
        for tag in read_tags(storage, each._handle.layout):
            plan_files(each._handle, tag.snapshot)
    assert missing(table) == set()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("changelogs_alone", [False, True])
def test_a_branch_that_expires_while_main_gets_it_leaves_main_whole(changelogs_alone):
    """Also where consumers keep changelogs from expiring and snapshots no more."""
    long = {"changelog.num-retained.min": "20", "changelog-producer": "input"}
    start = filled({**long, "consumer.changelog-only": "true"} if changelogs_alone else {})
    refused = set()
    for at in moments(start, fast_forward):
        storage = Meeting(start, at, lambda t: expire(opened(t._handle.storage, "dev")))
        told = None
        try:
            fast_forward(opened(storage))
        except POSSIBLE as error:
            told = error
        complete(storage)
        there = [snapshot.id for snapshot in opened(storage).snapshots()]
        assert there == [*range(there[0], there[-1] + 1)], storage.log[at - 1]
        assert told is not None or there[-1] == 8, storage.log[at - 1]
        refused.add(told is not None)
    assert refused == {True, False} or not IS_WHOLE


@pytest.mark.parametrize("writes", [False, True])
def test_a_rollback_while_main_gets_a_branch_is_not_undone(writes):
    """Main has what the rollback left and, if it ``writes``, the commit after it."""

    def cut(table: lake.Table) -> None:
        table.rollback(snapshot=5, force=True, as_latest=False)
        if writes:
            write(table, "after the rollback")

    start = filled()
    alone = start.reopened()
    fast_forward(opened(alone))
    met = [call for call in alone.log if IS_WHOLE or "snapshot-" in call.path]
    assert {call.operation for call in met} >= {"read", "create"}
    for call in met:
        storage = Meeting(start, call.number, cut)
        with suppress(*POSSIBLE):
            fast_forward(opened(storage))
        assert storage.met
        assert storage.refused is None, call
        there = [snapshot.id for snapshot in opened(storage).snapshots()]
        assert there == ([5, 6] if writes else [5]), call
        assert ("1:after the rollback" in rows(opened(storage))) == writes, call
        complete(storage)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEETINGS)
def test_whoever_comes_second_is_refused_or_has_all_of_it(name):
    first, second = MEETINGS[name]
    start = filled()
    for at in moments(start, first, most=6):
        storage = Meeting(start, at, second)
        with suppress(*POSSIBLE):
            first(opened(storage))
        assert storage.met
        assert storage.refused is None or isinstance(storage.refused, POSSIBLE), storage.refused
        try:
            complete(storage)
        except BaseException as error:
            error.add_note(f"{name}, met at call {at}: {storage.log[at - 1]}")
            raise


def test_a_tag_made_while_its_snapshot_expires_fails_or_is_complete():
    outcomes = set()
    start = filled()
    for at in moments(start, expire):
        storage = Meeting(start, at, lambda t: t.tags.create("new", snapshot=5))
        expire(opened(storage))
        is_there = "new" in [tag.name for tag in opened(storage).tags.list()]
        assert is_there == (storage.refused is None)
        complete(storage)
        outcomes.add(is_there)
    assert outcomes == {True, False}


class Moving(Meeting):
    """Renames a directory in one step."""

    def rename_directory(self, old: str, new: str) -> None:
        self._call("rename_directory", old, lambda: self._disk.rename_directory(old, new))


def write_on(table: lake.Table) -> None:
    table.write(pa.table({"id": [9], "note": ["late"]}), commit=lake.CommitId("job", 1))


def write_on_dev(table: lake.Table) -> None:
    write_on(opened(table._handle.storage, "dev"))


def after_publication(start: CrashableStorage, act: Act) -> int:
    """The first call after the creation of a snapshot."""
    alone = start.reopened()
    act(opened(alone))
    calls = enumerate(alone.log, 2)
    return next(n for n, c in calls if c.operation == "create" and "/snapshot-" in c.path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [Meeting, Moving])
def test_a_branch_that_is_renamed_during_a_commit_keeps_the_files_of_its_snapshots(kind):
    start = filled()
    outcomes = set()
    for at in {*moments(start, write_on_dev), after_publication(start, write_on_dev)}:
        storage = kind(start, at, lambda t: t.branches.rename("dev", "new"))
        outcome: type[Exception] | None = None
        try:
            write_on_dev(opened(storage))
        except (lake.NotFoundError, lake.CorruptTableError, lake.CommitOutcomeUnknownError) as told:
            outcome = type(told)
        assert storage.refused is None
        complete(storage)
        new = opened(storage, "new")
        if outcome is lake.CommitOutcomeUnknownError:
            write_on(new)
        is_there = outcome in (None, lake.CommitOutcomeUnknownError)
        assert rows(new).count("9:late") == is_there, storage.log[at - 1]
        outcomes.add(outcome)
    assert lake.CommitOutcomeUnknownError in outcomes


def met_by_open_branch(start: CrashableStorage, at: int, act: Act = write_on) -> Meeting:
    """A storage where, at a call, another program commits to a branch that it has open."""
    storage = Meeting(start, at, lambda _: act(branch))
    beside = Meeting(storage, 0, rename)
    beside._disk = storage._disk
    branch = opened(beside, "dev")
    return storage


def last_deletions(start: CrashableStorage) -> list[int]:
    """The calls of a renaming that show the new name and delete the old one."""
    alone = start.reopened()
    rename(opened(alone))
    return [call.number for call in alone.log if call.operation.startswith("delete")]


@pytest.mark.sampled(1)
def test_a_commit_to_an_open_branch_that_is_being_copied_to_a_new_name_is_not_lost():
    start = filled()
    outcomes = set()
    for at in sorted({*moments(start, rename), *last_deletions(start)}):
        storage = met_by_open_branch(start, at)
        with suppress(lake.CommitConflictError):
            rename(opened(storage))
        complete(storage)
        names = [each.name for each in opened(storage).branches.list()]
        assert unfinished_branches(storage, LAYOUT) == []
        branch = opened(storage, "new" if "new" in names else "dev")
        outcome = None if storage.refused is None else type(storage.refused)
        assert outcome in (None, lake.NotFoundError, lake.CommitOutcomeUnknownError)
        if outcome is lake.CommitOutcomeUnknownError:
            assert "was renamed or deleted during the commit" in str(storage.refused)
            write_on(branch)
        is_there = outcome is not lake.NotFoundError
        assert rows(branch).count("9:late") == is_there, storage.log[at - 1]
        outcomes.add(outcome)
    assert lake.CommitOutcomeUnknownError in outcomes


def test_a_retry_on_an_open_branch_that_is_being_renamed_does_not_report_success():
    start = filled()
    outcomes = []

    def write_twice(branch: lake.Table) -> None:
        with pytest.raises((lake.NotFoundError, lake.CommitOutcomeUnknownError)) as first:
            write_on(branch)
        with pytest.raises(first.type):
            write_on(branch)
        outcomes.append(first.type)

    for at in last_deletions(start):
        rename(opened(met_by_open_branch(start, at, write_twice)))
    assert lake.CommitOutcomeUnknownError in outcomes


def test_a_retry_on_an_open_branch_whose_renaming_ends_meanwhile_does_not_report_success():
    """The retry finds its snapshot at the old name; then the renaming deletes it with its mark."""
    start = filled()
    outcomes = []

    def write_until_renamed(branch: lake.Table) -> None:
        storage, mark = branch._handle.storage, branch._handle.layout.unfinished_branch("dev")
        with pytest.raises((lake.NotFoundError, lake.CommitOutcomeUnknownError)) as first:
            write_on(branch)
        calls = len(storage.log)
        with pytest.raises(first.type):
            write_on(branch)
        retry = [(call.operation, call.path) for call in storage.log[calls:]]
        if ("exists", mark) in retry:  # after the snapshot was found
            storage._at = len(storage.log) + retry.index(("exists", mark)) + 1
            with pytest.raises(lake.CommitOutcomeUnknownError):
                write_on(branch)
            outcomes.append(storage.met)

    for at in last_deletions(start):
        rename(opened(met_by_open_branch(start, at, write_until_renamed)))
    assert outcomes
    assert all(outcomes)


@pytest.mark.sampled(1)
def test_two_calls_of_a_renaming_and_a_commit_never_delete_both_directories():
    """The second call begins and ends during the first, and the commit during the second."""
    start = filled()
    refused = set()
    for at, inner in itertools.product(last_deletions(start), moments(start, rename, most=4)):
        second = met_by_open_branch(start, inner)
        first = Meeting(start, at, lambda _, second=second: rename(opened(second)))
        first._disk = second._disk
        with suppress(lake.CommitConflictError):
            rename(opened(first))
        complete(first)
        names = {each.name for each in opened(first).branches.list()} - {"old"}
        assert unfinished_branches(first, LAYOUT) == []
        assert names, (first.log[at - 1], inner)
        if second.met and second.refused is None:
            assert any("9:late" in rows(opened(first, each)) for each in names)
        refused.add(type(first.refused))
    assert lake.CommitConflictError in refused or not IS_WHOLE


def on_dev(act: Act) -> Act:
    return lambda table: act(opened(table._handle.storage, "dev"))


def rename(table: lake.Table) -> None:
    table.branches.rename("dev", "new")


def test_a_rollback_of_a_branch_that_is_renamed_meanwhile_names_the_renaming():
    start = filled()
    act = on_dev(lambda t: t.rollback(snapshot=7, as_latest=True))
    storage = Meeting(start, after_publication(start, act), rename)
    told = r"or branch 'dev' was renamed meanwhile: then open it under its new name"
    with pytest.raises(lake.CommitOutcomeUnknownError, match=told):
        act(opened(storage))


CHANGES_OF_A_RENAMED_BRANCH: dict[str, Act] = {
    "rename": rename,
    "deletion": lambda t: t.branches.delete("dev"),
    "tag": on_dev(lambda t: t.tags.create("late")),
    "replaced tag": on_dev(lambda t: t.tags.replace("late")),
    "consumer": on_dev(lambda t: t.consumers.set("job", next_snapshot=7)),
}


def state_of(table: lake.Table) -> object:
    consumers = {each.id: each.next_snapshot for each in table.consumers.list()}
    return rows(table), [(each.name, each.snapshot_id) for each in table.tags.list()], consumers


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGES_OF_A_RENAMED_BRANCH)
def test_a_change_of_a_branch_that_is_copied_to_a_new_name_is_not_lost(change):
    """The storage cannot rename directories."""
    act = CHANGES_OF_A_RENAMED_BRANCH[change]
    start = filled()
    opened(start, "dev").tags.create("late", snapshot=7)
    if change == "tag":
        opened(start, "dev").tags.delete("late")
    before = state_of(opened(start, "dev"))
    changed = start.reopened()
    act(opened(changed))
    names = [each.name for each in opened(changed).branches.list()]
    after = [state_of(opened(changed, each)) for each in ("dev", "new") if each in names]
    for at in moments(start, rename, most=6):
        storage = Meeting(start, at, act)
        is_renamed = True
        try:
            rename(opened(storage))
        except (*POSSIBLE, lake.AlreadyExistsError):
            is_renamed = False
        complete(storage)
        there = {each.name: opened(storage, each.name) for each in opened(storage).branches.list()}
        assert unfinished_branches(storage, LAYOUT) == []
        found = [state_of(there[each]) for each in ("dev", "new") if each in there]
        assert found == ([before] if storage.refused else after), storage.log[at - 1]
        assert not is_renamed or "new" in there, storage.log[at - 1]
