"""Expiry dies at every storage call: kept snapshots read as before, and the next run finishes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import CommitConflictError, InvalidRequestError, UnavailableError
from lakeformat.paimon.deletion import announce, read_intents, refuse_if_expiring
from lakeformat.paimon.deletion.intent import STALE_MILLIS
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import Tag, create_tag, delete_tag, tag_names
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage, Fault, FaultKind
from tests.expired import missing, unneeded
from tests.sampling import sampled_calls, sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
ONE_BY_ONE = {
    "file-operation.thread-num": "1",
    "bucket": "1",
    "manifest.merge-min-count": "2",  # so that manifests go too
}
LONG_CHANGELOGS = {
    **ONE_BY_ONE,
    "changelog-producer": "input",
    "changelog.num-retained.min": "2",
    "changelog.num-retained.max": "3",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
}
_names = itertools.count(1)


def simulated() -> Environment:
    """A world in which every run makes the same calls under names of its own."""
    names, first = itertools.count(), next(_names)
    return Environment(
        now_millis=lambda: 1_700_000_000_000,
        new_id=lambda: f"{first:08d}-{next(names):04d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated())


def fill(storage, options: Mapping[str, str], commits: int = 3):
    """Commits, a tag on the second, a compaction, and one commit more."""
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("note", "STRING")],
        primary_key=["id"],
        options=options,
    )
    for number in range(commits):
        write(table, number)
    create_tag(storage, LAYOUT, Tag("two", read_snapshot(storage, LAYOUT, 2)))
    table.compact(executor="serial")
    write(table, commits)
    return storage


def write(table: lake.Table, number: int) -> None:
    table.write(pa.table({"id": [1, 2 + number], "note": [f"{number}"] * 2}))


def expire(storage, acknowledged=None) -> None:
    report = opened(storage).expire_snapshots(retain_max=1, retain_min=1)
    if not report.is_complete:
        raise UnavailableError("; ".join(report.deleted.failed))


def rows(table: lake.Table, **when) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.scan(**when).to_arrow().to_pylist())


def state(storage) -> dict[object, list[tuple]]:
    """The rows of the kept states: the newest snapshot and the tag."""
    table = opened(storage)
    return {"newest": rows(table), "two": rows(table, tag="two")}


def test_a_fault_at_any_call_leaves_what_stays_readable_and_the_next_run_finishes():
    start = fill(CrashableStorage(), ONE_BY_ONE)
    expected = state(start)
    for trial in sampled_states(expire, start=start):
        storage = trial.reopened()
        told = f"in {trial}\n{trial.storage.trace()}"
        assert state(storage) == expected, told
        there = snapshot_ids(storage, LAYOUT)
        assert there == list(range(there[0], 6)), told  # no gap
        assert not missing(opened(storage)), told
        expire(storage)
        assert state(storage) == expected, told
        assert snapshot_ids(storage, LAYOUT) == [5], told
        assert not unneeded(opened(storage)), told
        assert not missing(opened(storage)), told
        assert not read_intents(opened(storage)._handle), told


def changes(table: lake.Table, after: int, upto: int) -> list[tuple]:
    return [
        tuple(row.values())
        for row in table.changes(after, upto, "changelog").to_arrow().to_pylist()
    ]


def expire_by_options(storage, acknowledged=None) -> None:
    if not opened(storage).expire_snapshots(older_than=1_700_000_000_000).is_complete:
        raise UnavailableError("some files would not go")


def test_changelogs_that_live_longer_can_be_read_whatever_call_an_expiry_dies_at():
    start = fill(CrashableStorage(), LONG_CHANGELOGS)
    expire_by_options(start)
    assert (changelog_ids(start, LAYOUT), snapshot_ids(start, LAYOUT)) == ([1, 2, 3, 4], [5])
    write(opened(start), 4)
    told, expected = changes(opened(start), 3, 6), state(start)
    for trial in sampled_states(expire_by_options, start=start):
        storage = trial.reopened()
        what = f"in {trial}\n{trial.storage.trace()}"
        assert state(storage) == expected, what
        assert changes(opened(storage), 3, 6) == told, what
        expire_by_options(storage)
        assert changelog_ids(storage, LAYOUT) == [4, 5], what
        assert snapshot_ids(storage, LAYOUT) == [6], what
        assert changes(opened(storage), 3, 6) == told, what
        assert state(storage) == expected, what
        assert not unneeded(opened(storage)), what
        assert not missing(opened(storage)), what


def test_a_file_that_would_not_go_is_reported_and_removed_by_the_next_run():
    start = fill(CrashableStorage(), ONE_BY_ONE)
    rehearsal = start.reopened()
    expire(rehearsal)
    call = next(c for c in rehearsal.log if c.operation == "delete" and "/bucket-" in c.path)
    storage = start.reopened(Fault(call.number, FaultKind.FAIL_BEFORE))
    report = opened(storage).expire_snapshots(retain_max=1, retain_min=1)
    assert not report.is_complete
    assert report.deleted.failed[0].startswith(f"crashable:///{call.path}: ")
    assert report.reason == "some files could not be removed: the next run tries again"
    assert storage.exists(call.path)
    again = opened(storage).expire_snapshots(retain_max=1, retain_min=1)
    assert (again.is_complete, again.finished) == (True, 1)
    assert not unneeded(opened(storage))


def test_of_two_expiries_at_once_none_does_damage_and_the_work_is_done():
    """A second one runs whole before each call of the first."""
    start = fill(CrashableStorage(), ONE_BY_ONE)
    expected = state(start)
    for call in sampled_calls(calls_of(start, expire)):
        for retain in (1, 2):
            storage = start.reopened()
            other = partial(expire_to, storage, retain)
            expire_to(Interrupted(storage, call.number, other), 2)
            expire(storage)
            assert state(storage) == expected, call
            assert not unneeded(opened(storage)), call
            assert not missing(opened(storage)), call
            assert not read_intents(opened(storage)._handle), call


def test_a_tag_made_while_its_snapshot_expires_is_refused_or_complete():
    start = fill(CrashableStorage(), ONE_BY_ONE)
    wanted = rows(opened(start), snapshot=3)
    outcomes = []
    for call in sampled_calls(calls_of(start, expire)):
        storage = start.reopened()
        made: list[str] = []
        expire(Interrupted(storage, call.number, partial(try_to_tag, storage, made)))
        outcomes.append(bool(made))
        if made:
            assert rows(opened(storage), tag="three") == wanted, call
        expire(storage)
        assert not unneeded(opened(storage)), call
        assert not missing(opened(storage)), call
    assert {*outcomes} == {True, False}


def test_a_tag_whose_maker_was_overtaken_by_an_expiry_is_refused():
    start = fill(CrashableStorage(), ONE_BY_ONE)
    for call in calls_of(start, lambda storage: try_to_tag(storage, [])):
        storage = start.reopened()
        made: list[str] = []
        overtaken = Interrupted(storage, call.number, partial(expire, storage))
        try_to_tag(overtaken, made)
        assert not missing(opened(storage)), call
        assert ("three" in tag_names(storage, LAYOUT)) is bool(made), call


def try_to_tag(storage, made: list[str]) -> None:
    """First the tag, then the look at what is expiring."""
    there = read_snapshot_if_present(storage, LAYOUT, 3)
    if there is None:
        return
    create_tag(storage, LAYOUT, Tag("three", there))
    try:
        refuse_if_expiring(opened(storage)._handle, 3, "tag 'three'")
    except CommitConflictError:
        delete_tag(storage, LAYOUT, "three")
    else:
        made.append("three")


def test_a_consumer_set_while_its_snapshot_expires_is_refused_or_finds_all_it_has_not_read():
    start = fill(CrashableStorage(), ONE_BY_ONE)
    outcomes = []
    for call in sampled_calls(calls_of(start, expire)):
        storage = start.reopened()
        made: list[str] = []
        expire(Interrupted(storage, call.number, partial(try_to_read, storage, made)))
        outcomes.append(bool(made))
        if made:
            assert snapshot_ids(storage, LAYOUT)[0] <= 3, call
        assert not missing(opened(storage)), call
    assert {*outcomes} == {True, False}


def try_to_read(storage, made: list[str]) -> None:
    try:
        opened(storage).consumers.set("job", next_snapshot=3)
    except (CommitConflictError, InvalidRequestError):
        return
    made.append("job")


def test_an_intent_whose_owner_died_long_ago_is_in_nobodys_way():
    storage = fill(CrashableStorage(), ONE_BY_ONE)
    handle = opened(storage)._handle
    announce(handle, [read_snapshot(storage, LAYOUT, 3)], 4)
    with pytest.raises(CommitConflictError, match="If an expiry was interrupted, run it again"):
        refuse_if_expiring(handle, 3, "tag 'three'")
    later = handle.environment.now_millis() + STALE_MILLIS + 1
    environment = replace(handle.environment, now_millis=lambda: later)
    refuse_if_expiring(replace(handle, environment=environment), 3, "tag 'three'")
    load_table(storage, LAYOUT, environment).expire_snapshots(retain_max=5, retain_min=5)
    assert not read_intents(handle)
    assert snapshot_ids(storage, LAYOUT) == [1, 2, 3, 4, 5]


def expire_to(storage, retain: int) -> None:
    opened(storage).expire_snapshots(retain_max=retain, retain_min=retain)


def calls_of(start: CrashableStorage, act) -> list:
    """The calls of an undisturbed run."""
    rehearsal = start.reopened()
    act(rehearsal)
    return rehearsal.log


class Interrupted:
    """Lets another actor act right before one call, on the storage below."""

    def __init__(self, storage: CrashableStorage, at: int, act) -> None:
        self._storage = storage
        self._at = len(storage.log) + at
        self._act = act
        self._is_done = False

    def __getattr__(self, name: str):
        if len(self._storage.log) + 1 >= self._at and not self._is_done:
            self._is_done = True
            self._act()
        return getattr(self._storage, name)
