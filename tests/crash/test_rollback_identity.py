"""A rollback dies at every storage call and is repeated under its identity: it happens once.

Another writer commits between the two attempts. Commits before the rollback are rolled back,
commits after it are kept.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.crash.test_references import disks, filled, opened
from tests.expired import missing

RUN = lake.CommitId("run", 1)


def add_late(table: lake.Table) -> None:
    table.write(pa.table({"id": [9], "note": ["late"]}))


def is_late_there(table: lake.Table) -> bool:
    return 9 in table.scan().to_arrow()["id"].to_pylist()


@pytest.mark.parametrize("target", [{"snapshot": 5}, {"tag": "two"}])
def test_one_that_keeps_history_is_published_once(target):
    start = filled()
    again = {False: 0, True: 0}

    def act(storage, _):
        opened(storage).rollback(**target, commit=RUN)

    for trial, storage in disks(act, start):
        table = opened(storage)
        was_done = table.latest_snapshot().commit_user == "run"
        add_late(table)
        report = opened(storage).rollback(**target, commit=RUN)
        assert (report.replayed, is_late_there(table)) == (was_done, was_done), str(trial)
        ours = [each for each in table.snapshots() if each.commit_user == "run"]
        assert [each.id for each in ours] == [report.snapshot_id], str(trial)
        assert missing(table) == set(), str(trial)
        again[was_done] += 1
    assert min(again.values()) > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", [{"snapshot": 5}, {"tag": "two"}])
def test_one_that_cuts_history_takes_nothing_out_that_came_after_it(target):
    start = filled()
    old = {each.uuid for each in opened(start.reopened()).snapshots()}
    again = {False: 0, True: 0}

    def act(storage, _):
        opened(storage).rollback(**target, as_latest=False, force=True, commit=RUN)

    for trial, storage in disks(act, start):
        table = opened(storage)
        goal = 5 if "snapshot" in target else 2
        was_done = table.latest_snapshot().id == goal
        add_late(table)
        report = opened(storage).rollback(**target, as_latest=False, force=True, commit=RUN)
        assert is_late_there(table) is was_done, str(trial)
        left = [each for each in table.snapshots() if each.id > goal]
        assert not {each.uuid for each in left} & old, str(trial)
        assert [each.id for each in left] == ([goal + 1] if was_done else []), str(trial)
        there = {tag.name for tag in table.tags.list()}
        assert there == ({"two"} if goal == 2 else {"two", "four"}), str(trial)
        assert missing(table) == set(), str(trial)
        add_late(table)
        last = opened(storage).rollback(**target, as_latest=False, force=True, commit=RUN)
        assert (last.replayed, last.target) == (True, report.target), str(trial)
        assert is_late_there(table), str(trial)
        again[was_done] += 1
    assert min(again.values()) > 0
