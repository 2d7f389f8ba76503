"""An interrupted expiry, and operations before its files are deleted."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.paimon.deletion import announce, read_intents
from lakeformat.paimon.deletion.intent import STALE_MILLIS
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog,
    write_changelog,
)
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from tests.expired import missing
from tests.keyed_rows import KeyedRows

ALL = {"retain_max": 1, "retain_min": 1}


def numbers(table: lake.Table, **when) -> list[int]:
    return sorted(row["k"] for row in table.scan(**when).to_arrow().to_pylist())


def replaced() -> KeyedRows:
    """1 adds a file, which tag one keeps, 2 deletes it, and 3 and 4 add files."""
    rows = KeyedRows(keyed=False)
    rows.commit(("+I", 1, "a"))
    rows.table.tags.create("one")
    rows.table.truncate()
    rows.commit(("+I", 3, "c"))
    rows.commit(("+I", 4, "d"))
    return rows


def all_expire_without_their_files(rows: KeyedRows) -> None:
    """All but the newest; what was about to go is remembered."""
    handle = rows.table._handle
    announce(handle, [read_snapshot(handle.storage, handle.layout, n) for n in (1, 2, 3)], 4)
    for number in (1, 2, 3):
        rows.expire(number)


def back_to_the_tag(rows: KeyedRows) -> lake.Table:
    """After a day: until then the expiry is assumed to be running."""
    rows.clock.millis += STALE_MILLIS + 1
    rows.table.rollback(tag="one", as_latest=False)
    rows.table.tags.delete("one")
    return rows.table


def write(rows: KeyedRows, *keys: int) -> None:
    for key in keys:
        rows.commit(("+I", key, "x"))


@pytest.mark.parametrize("more", [(5,), (5, 6), (5, 6, 7, 8, 9)], ids=len)
def test_a_snapshot_that_was_brought_back_keeps_its_files_once_it_has_expired_again(more):
    """The numbers of what was about to go are those of other snapshots by then."""
    rows = replaced()
    all_expire_without_their_files(rows)
    table = back_to_the_tag(rows)
    write(rows, *more)
    table.expire_snapshots(**ALL)
    assert (numbers(table), missing(table)) == ([1, *more], set())
    table.expire_snapshots(**ALL)
    assert (numbers(table), missing(table)) == ([1, *more], set())
    assert read_intents(table._handle) == []


def test_what_went_is_finished_although_others_have_its_numbers_now():
    rows = replaced()
    all_expire_without_their_files(rows)
    table = back_to_the_tag(rows)
    write(rows, 5, 6)
    planned = table.expire_snapshots(retain_max=9, retain_min=9, dry_run=True)
    assert planned.has_work
    assert "would finish 1 interrupted expiry" in planned.lines
    done = table.expire_snapshots(retain_max=9, retain_min=9)
    assert "finished 1 interrupted expiry" in done.lines
    assert planned.deleted.total == done.deleted.total > 0
    for number in snapshot_ids(table._handle.storage, table._handle.layout):
        assert numbers(table, snapshot=number) == [1, 5, 6][:number]
    assert missing(table) == set()


def test_a_tag_is_made_of_a_snapshot_that_has_the_number_of_one_about_to_expire():
    rows = replaced()
    all_expire_without_their_files(rows)
    table = back_to_the_tag(rows)
    write(rows, 5, 6)
    table.tags.create("other", snapshot=2)
    assert numbers(table, tag="other") == [1, 5]


@pytest.mark.parametrize("again", [False, True], ids=["numbers are free", "numbers are in use"])
def test_changelogs_that_went_before_a_rollback_take_no_file_that_came_back(again: bool):
    rows = replaced()
    handle = rows.table._handle
    storage, layout = handle.storage, handle.layout
    snapshots = [read_snapshot(storage, layout, n) for n in (1, 2, 3)]
    announce(handle, snapshots, 4, changelogs=True)
    for number in (1, 2, 3):
        rows.expire(number)
    table = back_to_the_tag(rows)
    write(rows, 5, 6, 7, 8)
    if again:
        for number in (1, 2, 3):
            write_changelog(storage, layout, read_snapshot(storage, layout, number))
            rows.expire(number)
    table.expire_snapshots(retain_max=9, retain_min=9)
    assert (numbers(table), missing(table)) == ([1, 5, 6, 7, 8], set())
    kept = [read_changelog(storage, layout, n).id for n in changelog_ids(storage, layout)]
    assert kept == ([1, 2, 3] if again else [])
    assert read_intents(handle, changelogs=True) == []
