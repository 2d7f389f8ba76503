"""A stream of an Iceberg table delivers each commit once, also after a restart of its reader."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

import lakeformat as lake
from tests.unit.iceberg.growing_table import GrowingTable
from tests.unit.iceberg.table.test_iceberg_changes import opened

SIGNS = {"+I": 1, "+U": 1, "-D": -1, "-U": -1}


def state(table: lake.IcebergTable) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def kinds(delivered: Any) -> list[str]:
    return list(delivered.to_arrow()["rowkind"].to_pylist())


def test_it_begins_with_all_rows_and_goes_on_with_each_commit(tmp_path):
    """The rows that a reader has after each commit are those of the table."""
    made = GrowingTable(tmp_path, "cow_dml", 2)
    table = made.open()
    stream, mine, full = table.stream(), Counter[tuple[Any, ...]](), []
    while made:
        for delivered in stream:
            full.append(delivered.is_full)
            for kind, *row in (each.values() for each in delivered.to_arrow().to_pylist()):
                mine[tuple(row)] += SIGNS[kind]
            assert +mine == state(table)
            assert delivered.position == table.position() == stream.position
        assert stream.poll() is None
        if len(full) == 7:
            break
        made.grow(1)
    assert full == [True, *[False] * 6]


def test_a_table_without_a_snapshot_is_read_in_full_when_it_has_one(tmp_path):
    made = GrowingTable(tmp_path, "cow_dml")
    stream = made.open().stream()
    assert (stream.poll(), stream.position, stream.next_snapshot) == (None, None, None)
    made.grow(1)
    delivered = stream.poll()
    assert delivered is not None
    assert delivered.is_full
    assert stream.next_snapshot == 2


def test_commits_that_only_move_rows_are_skipped():
    table = opened("rewritten")
    first = table.snapshots()[0]
    stream = table.stream("from-snapshot", snapshot=first.snapshot_id)
    delivered = [each.snapshot_id for each in stream]
    assert delivered == [
        each.snapshot_id for each in table.snapshots() if each.operation != "replace"
    ]


@pytest.mark.parametrize(
    ("mode", "chosen", "delivered"),
    [
        ("latest", {}, []),
        ("latest-full", {}, [6]),
        ("compacted-full", {}, [6]),
        ("from-snapshot", {"snapshot": 5}, [5, 6]),
        ("from-snapshot-full", {"snapshot": 4}, [4, 5, 6]),
    ],
)
def test_it_starts_where_its_mode_says(mode, chosen, delivered):
    stream = opened("six_commits").stream(mode, **chosen)
    assert [each.position.number for each in stream] == delivered


def test_it_starts_at_a_time_with_the_first_commit_then_or_later():
    table = opened("six_commits")
    times = [datetime.fromtimestamp(each.timestamp_ms / 1000, UTC) for each in table.snapshots()]
    stream = table.stream("from-timestamp", as_of=times[4])
    assert [each.position.number for each in stream] == [5, 6]
    every = table.stream("from-timestamp", as_of=datetime(2000, 1, 1, tzinfo=UTC))
    assert len([*every]) == 6


def test_it_starts_with_the_rewritten_files_if_there_are_some():
    table = opened("rewritten")
    begin = table.stream("compacted-full").starts_at()
    assert begin.full == table.snapshots()[-2].snapshot_id
    assert begin.position == table.snapshots()[-2].position


def test_rows_are_chosen_as_in_changes():
    stream = opened("cow_dml").stream(
        "from-snapshot", snapshot=1, columns=["id"], where="id = 2", keys=["id"]
    )
    assert [kinds(each) for each in stream][:2] == [["+I"], ["-U", "+U"]]
    with pytest.raises(
        lake.InvalidRequestError, match="mode of a stream must be one of latest-full"
    ):
        opened("cow_dml").stream("newest")
    with pytest.raises(lake.NotFoundError, match="has no snapshot 77: it may have expired"):
        opened("cow_dml").stream("from-snapshot", snapshot=77)


def test_a_reader_with_a_consumer_gets_again_what_it_has_not_acknowledged(tmp_path):
    made = GrowingTable(tmp_path, "cow_dml", 3)
    first = made.open().stream("from-snapshot", snapshot=1, consumer="job")
    assert next(first).position.number == 1
    first.acknowledge()
    assert next(first).position.number == 2  # and crashes
    made.grow(1)
    again = made.open().stream(consumer="job")
    assert [each.position.number for each in again] == [2, 3]
    again.acknowledge()
    assert [*made.open().stream(consumer="job")] == []
    with pytest.raises(lake.InvalidRequestError, match="has no consumer to store its progress"):
        made.open().stream().acknowledge()


def test_a_full_read_is_acknowledged_once_it_was_delivered(tmp_path):
    made = GrowingTable(tmp_path, "cow_dml", 2)
    stream = made.open().stream(consumer="job")
    stream.acknowledge()
    assert made.open().consumers.list() == []
    assert next(stream).is_full
    stream.acknowledge()
    assert [each.position.number for each in made.open().consumers.list()] == [1]


def test_it_ends_with_an_error_if_commits_expired_unseen(tmp_path):
    made = GrowingTable(tmp_path, "expired")
    stream = made.open().stream("from-snapshot", snapshot=1, consumer="slow")
    assert next(stream).position.number == 1
    stream.acknowledge()
    made.grow()
    with pytest.raises(lake.NotFoundError, match=r"have expired\. First .*reset\('slow'\)"):
        stream.poll()


def test_it_ends_with_an_error_after_a_rollback():
    table = opened("branches_tags")
    stream = table.stream("latest")
    stream._place = lake.Position.parse(f"main/{table.position().number}@1")
    with pytest.raises(lake.NotFoundError, match="that a rollback removed"):
        stream.poll()
