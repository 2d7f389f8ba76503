"""The consumers of a table: the snapshots they keep, and the error after they fell behind."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.errors import CommitConflictError
from lakeformat.paimon.deletion import announce
from lakeformat.paimon.metadata.consumer import Consumer, write_consumer
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from tests.keyed_rows import KeyedRows

ALL = {"retain_max": 1, "retain_min": 1}
CHANGELOG_ONLY = {
    "changelog-producer": "input",
    "consumer.changelog-only": "true",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "2",
}


def three_snapshots(**options: str) -> KeyedRows:
    rows = KeyedRows({key.replace("_", "-"): value for key, value in options.items()})
    for number in range(3):
        rows.commit(("+I", number, "x"))
    return rows


def names(table: lake.Table) -> dict[str, int]:
    return {state.id: state.next_snapshot for state in table.consumers.list()}


def test_a_consumer_may_wait_for_the_snapshot_that_is_still_to_come():
    table = three_snapshots().table
    table.consumers.set("job", next_snapshot=4)
    [state] = table.consumers.list()
    assert (state.next_snapshot, state.behind, state.is_stale) == (4, 0, False)
    with pytest.raises(lake.InvalidRequestError, match="the next commit makes snapshot 4"):
        table.consumers.set("job", next_snapshot=5)


def test_a_consumer_is_not_set_to_a_position_that_a_rollback_removed():
    table = three_snapshots().table
    removed, kept = table.position(), table.position(1)
    table.rollback(snapshot=1, as_latest=False)
    for _ in range(3):
        table.write(table.scan().to_arrow())

    for dry_run in (True, False):
        with pytest.raises(lake.InvalidRequestError, match=r"'job' cannot be set: .* a rollback"):
            table.consumers.set("job", after=removed, dry_run=dry_run)

    assert names(table) == {}
    table.consumers.set("job", after=kept)
    table.consumers.set("plain", after=3)
    assert names(table) == {"job": 2, "plain": 4}


def test_a_consumer_that_fell_behind_is_told_the_earliest_there_is():
    table = three_snapshots().table
    table.expire_snapshots(**ALL)
    with pytest.raises(
        lake.InvalidRequestError, match="which has expired: the earliest one left is 3"
    ):
        table.consumers.set("job", next_snapshot=1)
    assert names(table) == {}


def test_a_stream_whose_consumer_fell_behind_is_told_the_earliest_there_is():
    rows = three_snapshots()
    storage, layout = rows.place
    write_consumer(storage, layout, Consumer("job", 1))
    storage.delete(
        f"{layout.consumer_directory}/consumer-job"
    )  # forgotten while its reader was away
    rows.table.expire_snapshots(**ALL)
    write_consumer(storage, layout, Consumer("job", 1))
    stream = rows.table.stream(consumer="job")
    with pytest.raises(lake.NotFoundError, match="has expired: the earliest snapshot left is 3"):
        stream.poll()
    [state] = rows.table.consumers.list()
    assert state.is_stale
    rows.table.consumers.reset("job", next_snapshot=3)  # the advice of the error
    assert rows.table.stream(consumer="job").poll() is not None


@pytest.mark.parametrize("named", [3, None])
def test_a_consumer_keeps_the_position_that_a_rollback_removes(named):
    table = three_snapshots().table
    removed = table.position()
    table.consumers.set("job", after=removed if named is None else table.position(named))
    table.rollback(snapshot=1, as_latest=False)
    for _ in range(2):
        table.write(table.scan().to_arrow())

    [state] = table.consumers.list()

    assert (state.next_snapshot, state.behind) == (2, 2)
    assert state.position.is_exactly(removed)
    assert table.since(state.position).rewound
    table.consumers.set("job", after=table.position())
    assert not table.since(table.consumers.list()[0].position).rewound


def test_a_consumer_is_moved_back_and_on_or_forgotten():
    table = three_snapshots().table
    table.consumers.set("job", next_snapshot=2)
    table.consumers.reset("job", next_snapshot=1)
    assert names(table) == {"job": 1}
    table.consumers.reset("job")
    assert names(table) == {}
    with pytest.raises(lake.NotFoundError, match="has no consumer 'job'; it has none"):
        table.consumers.reset("job")


def test_consumers_are_cleared_by_name():
    table = three_snapshots().table
    for name in ("a-1", "a-2", "b-1"):
        table.consumers.set(name, next_snapshot=3)
    planned = table.consumers.clear(including="a-.*", excluding=".*-2", dry_run=True)
    assert (planned.removed, planned.kept) == (("a-1",), ("a-2", "b-1"))
    table.consumers.clear(including="a-.*", excluding=".*-2")
    assert sorted(names(table)) == ["a-2", "b-1"]
    with pytest.raises(lake.InvalidRequestError, match="must be a regular expression"):
        table.consumers.clear(including="(")


def test_consumers_without_progress_are_forgotten():
    rows = three_snapshots()
    table = rows.table
    table.consumers.set("old", next_snapshot=1)
    [state] = table.consumers.list()
    rows.clock.millis = state.modified_millis + 10_000
    report = table.consumers.expire(older_than=state.modified_millis + 1, dry_run=True)
    assert report.removed == ("old",)
    assert table.consumers.expire(older_than=state.modified_millis).kept == ("old",)
    with pytest.raises(lake.InvalidRequestError, match="in the future"):
        table.consumers.expire(older_than=rows.clock.millis + 1)


def test_an_expiry_forgets_consumers_first_where_the_table_says_after_how_long():
    rows = three_snapshots(**{"consumer.expiration-time": "1 min"})
    rows.table.consumers.set("old", next_snapshot=1)
    [state] = rows.table.consumers.list()
    rows.clock.millis = state.modified_millis + 61_000
    planned = rows.table.expire_snapshots(**ALL, dry_run=True)
    assert (planned.consumers, planned.snapshots) == (("old",), (1, 2))
    assert "would delete consumers without progress: old" in planned.lines
    assert names(rows.table) == {"old": 1}
    report = rows.table.expire_snapshots(**ALL)
    assert (report.consumers, report.snapshots) == (("old",), (1, 2))
    assert "deleted consumers without progress: old" in report.lines
    assert names(rows.table) == {}


def test_with_changelog_only_consumers_keep_changelogs_and_no_snapshots():
    rows = KeyedRows(CHANGELOG_ONLY)
    for number in range(5):
        rows.commit(("+I", 1, f"{number}"))
    rows.table.consumers.set("job", next_snapshot=2)
    rows.table.expire_snapshots()
    assert [snapshot.id for snapshot in rows.table.snapshots()] == [5]
    rows.table.expire_snapshots()
    stream = rows.table.stream(consumer="job")
    told = [each.snapshot_id for each in stream]
    assert told == [2, 3, 4, 5]


def test_a_consumer_of_a_snapshot_that_is_expiring_is_refused_and_keeps_its_old_place():
    rows = three_snapshots()
    storage, layout = rows.place
    rows.table.consumers.set("job", next_snapshot=3)
    announce(rows.table._handle, [read_snapshot(storage, layout, 1)], 2)
    with pytest.raises(CommitConflictError, match=r"snapshot 1 of .* is expiring"):
        rows.table.consumers.set("job", next_snapshot=1)
    with pytest.raises(CommitConflictError, match=r"snapshot 1 of .* is expiring"):
        rows.table.consumers.set("new", next_snapshot=1)
    assert names(rows.table) == {"job": 3}


def test_a_rewound_consumer_that_keeps_only_changelogs_is_still_rewound():
    rows = KeyedRows(CHANGELOG_ONLY)
    for number in range(3):
        rows.commit(("+I", 1, f"{number}"))
    table = rows.table
    read = table.consumers.set_rewound("job", upto=table.snapshots()[1].position)
    table.expire_snapshots()
    assert [snapshot.id for snapshot in table.snapshots()] == [3]
    [state] = table.consumers.list()
    assert (state.is_stale, table.since(read).rewound) == (False, True)


def test_a_rewound_consumer_keeps_the_snapshot_to_read_until_it_is_set():
    table = three_snapshots().table
    read = table.consumers.set_rewound("job", upto=table.snapshots()[1].position)
    table.expire_snapshots(**ALL)

    [state] = table.consumers.list()

    assert (state.next_snapshot, state.behind, state.is_stale) == (2, 2, False)
    assert state.position.is_exactly(read)
    assert table.since(read).rewound
    table.consumers.set("job", after=table.position())
    assert not table.since(table.consumers.list()[0].position).rewound
