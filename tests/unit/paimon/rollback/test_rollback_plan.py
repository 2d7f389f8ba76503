"""The snapshots that a retried rollback must still remove, number by number."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.consumer import Consumer, write_consumer
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.rollback.identity import StartedCut
from lakeformat.paimon.rollback.plan import RollbackPlan, plan_rollback
from lakeformat.paimon.tags.source import Origin
from tests.keyed_rows import KeyedRows

RUN = lake.CommitId("run", 1)


@pytest.fixture
def rows() -> KeyedRows:
    rows = KeyedRows({})
    for number in range(1, 5):
        rows.commit(("+I", 1, f"v{number}"))
    return rows


def begun(rows: KeyedRows) -> StartedCut:
    """A rollback to snapshot 2 that was about to take out 3 and 4."""
    handle = rows.table._handle
    removed = {read_snapshot(handle.storage, handle.layout, number).identity for number in (3, 4)}
    return StartedCut(handle, RUN, 2, frozenset(removed))


def planned(rows: KeyedRows, cut: StartedCut) -> RollbackPlan:
    handle = rows.table._handle
    return plan_rollback(handle, Origin(read_snapshot(handle.storage, handle.layout, 2)), cut)


def test_while_the_first_behind_the_target_is_there_all_behind_it_is_to_go(rows):
    plan = planned(rows, begun(rows))
    assert (tuple(plan.snapshots), plan.newest) == ((4, 3), None)


def test_once_it_is_gone_what_was_committed_since_stays_and_what_was_left_goes(rows):
    table, cut = rows.table, begun(rows)
    storage, layout = table._handle.storage, table._handle.layout
    table.tags.create("old", snapshot=3)
    old = {number: storage.read(layout.snapshot(number)) for number in (3, 4)}
    for number in (4, 3):
        storage.delete(layout.snapshot(number))
    rows.commit(("+I", 1, "since"))
    table.tags.create("since", snapshot=3)
    storage.overwrite(layout.snapshot(4), old[4])  # what a crash has brought back
    for number in (2, 3):
        storage.overwrite(layout.changelog(number), old[3])
    for number in (3, 4, 5):
        write_consumer(storage, layout, Consumer(f"reads-{number}", number))

    plan = planned(rows, cut)

    assert (plan.newest, tuple(plan.snapshots), tuple(plan.changelogs)) == (3, (4,), (3,))
    assert tuple(plan.tags) == ("old",)
    assert [consumer.id for consumer in plan.consumers] == ["reads-5"]
