"""Expiry of changelogs that outlive their snapshots: files with other readers are kept."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows

LONG_LIVED = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "50",
}
ALL = {"retain_max": 1, "retain_min": 1}


def numbers(table: lake.Table) -> list[int]:
    return sorted(row["k"] for row in table.scan().to_arrow().to_pylist())


def changelogs(table: lake.Table) -> list[int]:
    return changelog_ids(table._handle.storage, table._handle.layout)


PRODUCER = lake.set_option("changelog-producer", "input")


def changed(table: lake.Table) -> list[int]:
    """The files that snapshots 1 and 2 added."""
    return sorted(row["k"] for row in table.changes(0, 2).to_arrow().to_pylist())


def keeping(rows: KeyedRows, count: int) -> lake.Table:
    """The table once it keeps so many changelogs."""
    option = lake.set_option("changelog.num-retained.max", str(count))
    return rows.catalog.alter_table("shop.t", option)


def taken_back(*, keyed: bool) -> KeyedRows:
    """1 and 2 add a file each, 3 deletes both, 4 adds one, and 5 rolls back to snapshot 2."""
    rows = KeyedRows(LONG_LIVED, keyed=keyed)
    rows.commit(("+I", 1, "a"))
    rows.commit(("+I", 2, "b"))
    rows.table.truncate()
    rows.commit(("+I", 3, "c"))
    tag = rows.table.rollback(snapshot=2, as_latest=True).protection_tag
    rows.commit(("+I", 4, "d"))
    rows.table.expire_snapshots(**ALL)
    assert (changelogs(rows.table), numbers(rows.table)) == ([1, 2, 3, 4, 5], [1, 2, 4])
    rows.table.tags.delete(tag, force=True)
    return rows


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_files_that_came_back_stay_when_the_changelog_that_deleted_them_expires(keyed: bool):
    rows = taken_back(keyed=keyed)
    table = keeping(rows, 3)
    assert table.expire_snapshots().changelogs == (1, 2, 3)
    assert numbers(table) == [1, 2, 4]
    assert missing(table) == set()


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_files_that_came_back_for_a_while_stay_as_long_as_their_changes_are_kept(keyed: bool):
    rows = taken_back(keyed=keyed)
    rows.table.truncate()
    rows.commit(("+I", 5, "e"))
    rows.table.expire_snapshots(**ALL)
    table = keeping(rows, 5)
    assert table.expire_snapshots().changelogs == (1, 2, 3)
    assert (numbers(table), missing(table)) == ([5], set())
    table = keeping(rows, 2)
    assert table.expire_snapshots().changelogs == (4, 5, 6)
    assert (numbers(table), missing(table), unneeded(table)) == ([5], set(), set())


def test_the_protection_of_a_rollback_stays_as_long_as_an_older_changelog_is_kept():
    rows = KeyedRows(LONG_LIVED)
    rows.commit(("+I", 1, "a"))
    rows.table.truncate()
    handle = rows.table._handle
    written = handle.storage.list(handle.layout.snapshot_directory)[0].modified_millis
    assert written is not None
    rows.clock.millis = written
    rows.table.rollback(snapshot=1, as_latest=True)
    rows.clock.millis += 3_600_000
    rows.commit(("+I", 2, "b"))
    rows.commit(("+I", 3, "c"))
    rows.table.expire_snapshots(**ALL)
    assert rows.table.tags.expire().deleted == ()
    keeping(rows, 1).expire_snapshots(**ALL)
    assert len(rows.table.tags.expire().deleted) == 1
    assert (numbers(rows.table), missing(rows.table)) == ([1, 2, 3], set())


def two_changelogs_of_files_that_were_deleted(branch: str | None = None) -> KeyedRows:
    """1 and 2 add a file each, 3 deletes both; only the changes of the three are kept."""
    rows = KeyedRows(LONG_LIVED)
    rows.commit(("+I", 1, "a"))
    rows.commit(("+I", 2, "b"))
    if branch is not None:
        rows.table.branches.create(branch, snapshot=2)
    rows.table.truncate()
    rows.commit(("+I", 3, "c"))
    rows.table.expire_snapshots(**ALL)
    assert (changelogs(rows.table), changed(rows.table)) == ([1, 2, 3], [1, 2])
    return rows


def test_a_branch_with_a_producer_spares_what_changelogs_of_main_tell_of():
    rows = two_changelogs_of_files_that_were_deleted("dev")
    rows.catalog.alter_table("shop.t$branch_dev", PRODUCER)
    branch = rows.catalog.table("shop.t$branch_dev")
    branch.compact(executor="serial")
    branch.write(pa.table({"k": pa.array([9], pa.int32()), "v": ["z"]}))
    branch.expire_snapshots(**ALL)
    assert (changed(rows.table), missing(rows.table)) == ([1, 2], set())
    rows.catalog.table("shop.t").branches.delete("dev")
    assert (changed(rows.table), missing(rows.table)) == ([1, 2], set())


def test_changes_from_before_there_was_a_producer_are_kept_and_expire():
    rows = two_changelogs_of_files_that_were_deleted()
    rows.catalog.alter_table("shop.t", PRODUCER)
    rows.table = rows.catalog.table("shop.t")
    rows.commit(("+I", 4, "d"))
    rows.table.tags.create("four")
    rows.table.compact(executor="serial")
    rows.commit(("+I", 5, "e"))
    rows.table.expire_snapshots(**ALL)
    rows.table.tags.delete("four")
    assert changed(rows.table) == [1, 2]
    table = keeping(rows, 2)
    table.expire_snapshots()
    assert (numbers(table), missing(table), unneeded(table)) == ([3, 4, 5], set(), set())


def test_lists_that_a_tag_has_kept_are_no_changes_once_it_is_gone():
    """With a producer then and now, files added by a commit are no changelog."""
    rows = KeyedRows({**LONG_LIVED, "changelog-producer": "lookup"})
    rows.commit(("+I", 1, "a"))
    rows.table.tags.create("kept", snapshot=1)
    rows.table.compact(executor="serial")
    rows.table.expire_snapshots(**ALL)
    assert changelogs(rows.table) == [1]
    rows.table.tags.delete("kept")
    rows.commit(("+I", 2, "b"))
    rows.table.truncate()
    rows.commit(("+I", 3, "c"))
    rows.table.expire_snapshots(**ALL)
    assert (missing(rows.table), unneeded(rows.table)) == (set(), set())
    report = lake.clone_table(rows.table, rows.catalog, "shop.copy", full=True)
    assert report.snapshot_ids == (5,)
    assert numbers(rows.catalog.table("shop.copy")) == [3]
