"""A time means the snapshot that was the newest then, also if it was committed earlier."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import NOW_MILLIS
from tests.sampling import count
from tests.unit.iceberg.write.made_tables import keep_newest, made_table

STEPS = ("append", "delete", "stage", "forward", "pick", "back", "undo", "again")


class Aged:
    """A table whose clock moves on by 10 ms with each step."""

    def __init__(self) -> None:
        self.now = NOW_MILLIS + 10
        handle = made_table(MemoryStorage("windows"), 2)
        self.handle = replace(handle, environment=Environment(now_millis=lambda: self.now))
        self.table = IcebergTable(self.handle)
        self.dev = IcebergTable(replace(self.handle, branch="dev"))
        self.rows = [(self.now - 1, Counter[int]())]
        """A time after each step, and the rows of main at that time."""
        self._next = 0

    def do(self, *steps: str) -> None:
        for step in steps:
            self.step(step)

    def step(self, name: str) -> None:
        """Do one step if it is possible now, and note the rows of main."""
        with suppress(LakeError, IndexError):
            getattr(self, f"_{name}")()
        self.rows.append((self.now + 5, rows_of(self.table)))
        self.now += 10

    def between(self, after: int, upto: int, mode: str = "auto") -> list[tuple[str, int]]:
        """The changes after the step ``after`` and up to the step ``upto``."""
        return changes_of(self.table.changes(self.at(after), self.at(upto), mode))

    def at(self, step: int) -> datetime:
        return datetime.fromtimestamp(self.rows[step][0] / 1000, UTC)

    def _new(self) -> pa.Table:
        self._next += 1
        return pa.table({"id": [self._next], "k": ["a"]})

    def _append(self) -> None:
        self.table.write(self._new())

    def _delete(self) -> None:
        self.table.delete(f"id = {min(rows_of(self.table), default=0)}")

    def _stage(self) -> None:
        self.table.branches.create("dev", exist_ok=True)
        self.dev.write(self._new())

    def _forward(self) -> None:
        self.table.branches.fast_forward("dev")

    def _pick(self) -> None:
        self.table.cherry_pick(self.dev.snapshots()[-1].snapshot_id)

    def _back(self) -> None:
        for earlier in self.table.snapshots()[:-1][-2:]:
            self.table.rollback(snapshot=earlier.snapshot_id)
            return

    def _again(self) -> None:
        self.table.branches.delete("dev")
        self._stage()

    def _undo(self) -> None:
        """Return to the snapshot that was the newest before the newest one, as after a rollback."""
        before = self.handle.load().metadata.snapshot_log[-2].snapshot_id
        self.table.branches.create("undo", snapshot=before)
        self.table.branches.fast_forward("undo")
        self.table.branches.delete("undo")


def rows_of(table: IcebergTable, **chosen) -> Counter[int]:
    return Counter(table.scan(**chosen).to_arrow()["id"].to_pylist())


def changes_of(rows) -> list[tuple[str, int]]:
    found = rows.to_arrow()
    return [*zip(found["rowkind"].to_pylist(), found["id"].to_pylist(), strict=True)]


def applied(rows: Counter[int], changes: list[tuple[str, int]]) -> Counter[int]:
    found = Counter(rows)
    for kind, number in changes:
        found[number] += 1 if kind.startswith("+") else -1
    assert min(found.values(), default=0) >= 0
    return +found


@settings(max_examples=count(4, whole=100))
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=13),
    cuts=st.sets(st.integers(0, 14)),
)
def test_changes_of_windows_one_after_the_other_give_the_rows_of_the_scan(steps, cuts):
    steps = ["append", *steps]
    aged = Aged()
    aged.do(*steps)
    ends = sorted({0, len(steps), *(each for each in cuts if each < len(steps))})
    found = aged.rows[0][1]
    for after, upto in pairwise(ends):
        before, expected = found, aged.rows[upto][1]
        found = applied(before, aged.between(after, upto))
        assert found == expected
        with suppress(NotFoundError):
            assert applied(before, aged.between(after, upto, "changelog")) == expected
    assert found == rows_of(aged.table)
    for step in range(len(steps)):
        kept = {each.snapshot_id for each in aged.table.snapshots()}
        with suppress(InvalidRequestError, NotFoundError):
            chosen = aged.table.rollback(as_of=aged.at(step), dry_run=True).snapshot_id
            assert rows_of(aged.table, snapshot=chosen) == aged.rows[step][1]
        state = aged.table._handle.load().metadata.current_id_at(aged.rows[step][0])
        if state is None or state in kept:
            stream = aged.table.stream("from-timestamp", as_of=aged.at(step))
            streamed = [change for each in stream for change in changes_of(each)]
            assert applied(aged.rows[step][1], streamed) == rows_of(aged.table)


@pytest.mark.parametrize("publish", ["forward", "pick"])
def test_a_commit_of_a_branch_is_in_the_window_in_which_it_was_published(publish):
    aged = Aged()
    aged.do("append", "stage", publish)
    assert aged.between(1, 2) == []
    assert aged.between(2, 3) == [("+I", 2)]
    [delivered] = aged.table.stream("from-timestamp", as_of=aged.at(2))
    assert changes_of(delivered) == [("+I", 2)]
    assert not [*aged.table.stream("from-timestamp", as_of=aged.at(3))]
    aged.table.rollback(as_of=aged.at(2))
    assert rows_of(aged.table) == Counter([1])


def test_a_window_that_begins_at_a_removed_snapshot_has_the_difference():
    aged = Aged()
    aged.do("append", "append", "back", "append")
    assert sorted(aged.between(2, 4)) == [("+I", 3), ("-D", 2)]
    assert sorted(aged.between(2, 3)) == [("-D", 2)]
    assert aged.between(1, 4) == [("+I", 3)]
    for mode in ("changelog", "appends"):
        with pytest.raises(NotFoundError, match=r"is not among the ancestors of .*mode='diff'"):
            aged.between(2, 4, mode)
    [delivered] = aged.table.stream("from-timestamp", as_of=aged.at(2))
    assert changes_of(delivered) == [("+I", 3)]
    with pytest.raises(InvalidRequestError, match=r"is not in the history .* was rolled back"):
        aged.table.rollback(as_of=aged.at(2))


def test_rows_that_return_are_in_the_window_of_their_return():
    aged = Aged()
    aged.do("append", "append", "back", "undo")
    assert aged.between(3, 4) == [("+I", 2)]
    assert aged.between(2, 4) == []
    [delivered] = aged.table.stream("from-timestamp", as_of=aged.at(3))
    assert changes_of(delivered) == [("+I", 2)]


def test_a_time_before_the_log_is_refused_if_snapshots_have_expired():
    """The newest snapshot was committed before the time, and published after it."""
    aged = Aged()
    aged.do("append", "stage", "forward")
    keep_newest(aged.handle)
    with pytest.raises(NotFoundError, match=r"have expired, .*read all rows with scan\(\)"):
        aged.between(2, 3)
    with pytest.raises(NotFoundError, match=r"or those snapshots have expired"):
        aged.table.rollback(as_of=aged.at(2))


def test_times_of_a_branch_are_those_of_its_commits():
    aged = Aged()
    aged.do("append", "stage", "stage")
    window = aged.dev.changes(aged.at(2), aged.at(3))
    assert changes_of(window) == [("+I", 3)]
    aged.dev.rollback(as_of=aged.at(2))
    assert rows_of(aged.dev) == Counter([1, 2])


@pytest.mark.parametrize("mode", ["auto", "changelog", "appends", "diff"])
def test_a_window_that_ends_before_it_starts_is_refused(mode):
    aged = Aged()
    aged.do("append", "append", "back", "append")
    with pytest.raises(InvalidRequestError, match=r"ends before it starts: .*Swap the two"):
        aged.between(3, 1, mode)


@pytest.mark.parametrize("name_end", [lambda first: first.snapshot_id, lambda first: "first"])
def test_an_older_snapshot_as_the_end_of_a_window_is_refused(name_end):
    """Only the snapshot of a start time that was rolled back is compared with the end."""
    aged = Aged()
    aged.do("append", "append", "append")
    first = aged.table.snapshots()[0]
    aged.table.tags.create("first", snapshot=first.snapshot_id)
    with pytest.raises(NotFoundError, match="is not among the ancestors"):
        aged.table.changes(aged.at(3), name_end(first))
