"""Many tags are deleted together: the snapshots and tags that are kept are read only once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import lakeformat as lake
from lakeformat.paimon.tags import delete as deletion
from lakeformat.tables.removal import Removal
from tests.counting import CountingStorage
from tests.expired import files_of_tables, missing, unneeded
from tests.keyed_rows import KeyedRows

EXPIRE = {"retain_max": 1, "retain_min": 1}
OPTIONS = {"file-operation.thread-num": "1", "manifest.merge-min-count": "5"}


def tagged(tags: int) -> lake.Table:
    """A table with this many tags of expired snapshots, each of which replaced all rows."""
    rows = KeyedRows(OPTIONS, keyed=False)
    for number in range(tags):
        rows.commit(("+I", number, "x"))
        rows.table.tags.create(f"t{number:02}")
        rows.table.truncate()
    rows.commit(("+I", 1, "newest"))
    rows.table.expire_snapshots(**EXPIRE)
    return rows.table


def names(count: int) -> list[str]:
    return [f"t{number:02}" for number in range(count)]


def counted(table: lake.Table) -> tuple[CountingStorage, lake.Table]:
    storage = CountingStorage(table._handle.storage)
    return storage, type(table)(replace(table._handle, storage=storage))


def reads_of_a_kept_tag(storage: CountingStorage) -> int:
    return storage.calls.count(("read", next(p for _, p in storage.calls if p.endswith("-t09"))))


@pytest.mark.parametrize("count", [2, 8])
def test_a_kept_tag_is_read_once_however_many_tags_are_deleted(count):
    storage, table = counted(tagged(10))
    assert len(table.tags.delete(*names(count)).deleted) == count
    assert reads_of_a_kept_tag(storage) == 1
    assert (unneeded(table), missing(table)) == (set(), set())


def test_each_deleted_tag_costs_a_few_calls():
    calls = {}
    for count in (2, 4, 8):
        storage, table = counted(tagged(10))
        table.tags.delete(*names(count))
        calls[count] = Counter(operation for operation, _ in storage.calls).total()
    assert (calls[8] - calls[4]) / 4 < 35
    assert calls[8] - calls[4] < 2.2 * (calls[4] - calls[2])


@pytest.mark.parametrize("count", [2, 8])
def test_interrupted_deletions_are_finished_together(count, monkeypatch: pytest.MonkeyPatch):
    table = tagged(10)
    with monkeypatch.context() as broken:
        broken.setattr(deletion, "remove_exclusive_files", refuse)
        with pytest.raises(lake.LakeError):
            table.tags.delete(*names(count))
    assert len(table.tags.list()) == 10 - count
    storage, table = counted(table)
    assert "of an interrupted deletion" in table.tags.delete().reason
    assert reads_of_a_kept_tag(storage) == 1
    assert (unneeded(table), missing(table)) == (set(), set())


def refuse(*arguments, **named):
    raise lake.LakeError("no connection")


def test_more_tags_than_fit_are_deleted_in_several_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(deletion, "_AT_ONCE", 2)
    table, planned, gone = tagged(6), list[Removal](), list[Removal]()
    dry = table.tags.delete(*names(5), dry_run=True, on_progress=planned.append)
    before = files_of_tables(table)
    report = table.tags.delete(*names(5), on_progress=gone.append)
    assert [each.path for each in gone] == [each.path for each in planned]
    assert before - files_of_tables(table) == {each.path for each in gone}
    assert (report.files, report.deleted) == (dry.files, dry.deleted)
    assert (unneeded(table), missing(table)) == (set(), set())


def test_the_reason_of_a_deleted_file_names_a_few_of_the_tags():
    gone: list[Removal] = []
    tagged(6).tags.delete(*names(5), on_progress=gone.append)
    assert {each.reason for each in gone} == {
        "only tag 't00' (snapshot 1) and tag 't01' (snapshot 3) and tag 't02' (snapshot 5) "
        "and 2 more tags referred to it"
    }
