"""A stream of an Iceberg table delivers each commit once, also after a restart of its reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from tests.unit.iceberg.growing_table import GrowingTable
from tests.unit.iceberg.table.test_iceberg_changes import opened
from tests.unit.iceberg.write.made_tables import keep_newest, made_table

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


def add(table: lake.IcebergTable, number: int) -> None:
    table.write(pa.table({"id": [number], "k": ["a"]}))


def compact(table: lake.IcebergTable) -> None:
    table.compact(min_input_files=2)


@pytest.mark.parametrize("change", [lambda table: add(table, 4), compact])
def test_it_ends_with_an_error_if_the_snapshots_of_a_rollback_expired(storage, change):
    """The oldest snapshot has the next number, but it does not follow the position."""
    handle = made_table(storage)
    table = lake.IcebergTable(handle)
    for number in (1, 2, 3):
        add(table, number)
    stream = table.stream("latest")
    assert stream.poll() is None
    at = table.position()
    table.rollback(snapshot=table.snapshots()[1].snapshot_id)
    change(table)
    keep_newest(handle)
    assert [each.position.number for each in table.snapshots()] == [at.number + 1]
    assert table.since(at).missed
    with pytest.raises(lake.NotFoundError, match=r"the commits that follow position main/3@"):
        stream.poll()
    with pytest.raises(lake.NotFoundError, match=r"position main/3@\d+ of .* has expired"):
        table.changes(at)


def test_it_ends_with_an_error_if_its_branch_was_created_again(storage):
    handle = made_table(storage)
    main = lake.IcebergTable(handle)
    add(main, 1)
    dev_handle = replace(handle, branch="dev")
    dev = lake.IcebergTable(dev_handle)
    main.branches.create("dev")
    add(dev, 2)
    stream = dev.stream("latest")
    assert stream.poll() is None
    main.branches.delete("dev")
    main.branches.create("dev")
    add(dev, 3)
    add(main, 4)
    keep_newest(dev_handle)
    with pytest.raises(lake.NotFoundError, match=r"the commits that follow position dev/2@"):
        stream.poll()


def test_it_continues_after_its_snapshot_expired(storage):
    handle = made_table(storage)
    table = lake.IcebergTable(handle)
    add(table, 1)
    older = table.position()
    add(table, 2)
    at = table.position()
    add(table, 3)
    keep_newest(handle)
    since = table.since(at)
    assert (len(since.snapshots), since.missed, since.rewound) == (1, False, False)
    assert (table.since(older).missed, table.since(older).rewound) == (True, False)


def test_a_history_that_begins_anew_has_no_earlier_position(storage):
    """Java's replacement of a table gives the first snapshot a new number and no parent."""
    handle = made_table(storage)
    table = lake.IcebergTable(handle)
    for number in (1, 2):
        add(table, number)
    at = table.snapshots()[0].position
    commit_metadata(handle, without_snapshots)
    add(table, 3)
    since = table.since(at)
    assert (len(since.snapshots), since.missed, since.rewound) == (1, False, True)


def without_snapshots(loaded: LoadedMetadata) -> TableMetadata:
    return replace(loaded.metadata, current_snapshot_id=None, references={}, snapshot_log=())
