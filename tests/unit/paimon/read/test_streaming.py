"""Streams of changes: where they start, what they pass over, and what a consumer keeps."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.consumer import Consumer, read_consumer, write_consumer
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from tests.keyed_rows import MINUTE, KeyedRows, listed

A, B, C = ("+I", 1, "a"), ("+I", 1, "b"), ("+I", 2, "c")


@pytest.fixture
def table() -> KeyedRows:
    table = KeyedRows()
    for row in (A, B, C):
        table.commit(row)
    return table


def drained(stream) -> list[tuple]:
    return [(found.snapshot_id, found.is_full, listed(found)) for found in stream]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ({}, [(3, True, [B, C])]),
        ({"mode": "latest"}, []),
        ({"mode": "from-snapshot", "snapshot": 2}, [(2, False, [B]), (3, False, [C])]),
        ({"mode": "from-snapshot-full", "snapshot": 2}, [(2, True, [B]), (3, False, [C])]),
        ({"mode": "from-timestamp", "as_of": 2 * MINUTE}, [(2, False, [B]), (3, False, [C])]),
        ({"mode": "from-timestamp", "as_of": 2 * MINUTE + 1}, [(3, False, [C])]),
        ({"mode": "from-timestamp", "as_of": datetime(1999, 1, 1, tzinfo=UTC)}, []),
        ({"mode": "compacted-full"}, [(3, True, [B, C])]),
    ],
)
def test_where_a_stream_starts(table, start, found):
    stream = table.table.stream(**start)
    assert drained(stream) == found
    assert stream.poll() is None
    table.commit(("-D", 1, "b"))
    assert drained(stream) == [(4, False, [("-D", 1, "b")])]
    assert stream.next_snapshot == 5


@pytest.mark.parametrize("mode", ["latest", "latest-full", "compacted-full"])
def test_a_stream_of_an_empty_table_begins_with_its_first_rows(mode):
    table = KeyedRows()
    stream = table.table.stream(mode)
    assert stream.poll() is None
    table.commit(A)
    found = drained(stream)
    assert [(number, rows) for number, _, rows in found] == [(1, [A])]


def test_a_stream_starts_at_the_earliest_snapshot_that_is_left(table):
    table.expire(1)
    assert drained(table.table.stream("from-snapshot", snapshot=1))[0] == (2, False, [B])
    assert drained(table.table.stream("from-snapshot-full", snapshot=1))[0] == (2, True, [B])


def test_a_next_snapshot_that_has_expired_is_an_error(table):
    stream = table.table.stream("from-snapshot", snapshot=1)
    stream.poll()
    table.expire(2)
    table.expire(1)
    with pytest.raises(
        lake.NotFoundError, match=r"snapshot 2 .* has expired: the earliest .* is 3"
    ):
        stream.poll()


@pytest.mark.parametrize(
    "start", [{}, {"mode": "latest"}, {"mode": "from-snapshot", "snapshot": 1}]
)
def test_a_stream_stops_after_a_rollback_of_rows_that_it_has_read(table, start):
    stream = table.table.stream(**start)
    drained(stream)
    table.table.rollback(snapshot=1, as_latest=False)
    with pytest.raises(lake.NotFoundError, match=r"up to snapshot 3, which the table no longer"):
        stream.poll()
    for row in (A, B, C):
        table.commit(row)
    with pytest.raises(lake.NotFoundError, match=r"rolled back or recreated\. Start the stream"):
        stream.poll()


def test_a_consumer_stops_after_a_rollback_and_keeps_the_place_that_the_rollback_set(table):
    drained(first := table.table.stream(consumer="job"))
    first.acknowledge()
    second = table.table.stream(consumer="job")
    assert second.poll() is None
    table.table.rollback(snapshot=1, as_latest=False)
    for row in (A, B, C):
        table.commit(row)
    for stream in (first, second):
        with pytest.raises(lake.NotFoundError, match=r"moved\. Delete it: .*reset\('job'\)"):
            stream.poll()
        with pytest.raises(lake.NotFoundError, match=r"not moved"):
            stream.acknowledge()
    assert drained(table.table.stream(consumer="job")) == [
        (2, False, [A]),
        (3, False, [B]),
        (4, False, [C]),
    ]


def test_a_consumer_past_the_newest_snapshot_stops(table):
    handle = table.table._handle
    write_consumer(handle.storage, handle.layout, Consumer("job", 9))
    with pytest.raises(lake.NotFoundError, match="up to snapshot 8, which the table no longer"):
        table.table.stream(consumer="job").poll()


def test_a_consumer_at_a_position_of_a_removed_snapshot_stops(table):
    handle = table.table._handle
    table.table.consumers.set("job", after=table.table.position())
    left = read_consumer(handle.storage, handle.layout, "job", handle.environment)
    table.table.rollback(snapshot=1, as_latest=False)
    for row in (A, B, C):
        table.commit(row)
    write_consumer(handle.storage, handle.layout, left)  # as a rollback of another engine leaves it
    with pytest.raises(lake.NotFoundError, match=r"up to snapshot 3, which .*reset\('job'\)"):
        table.table.stream(consumer="job")


def test_a_consumer_whose_position_a_rollback_removes_goes_on_where_the_rollback_set_it(table):
    table.table.consumers.set("job", after=table.table.position())
    table.table.rollback(snapshot=2, as_latest=False)
    table.commit(A)
    assert drained(table.table.stream(consumer="job")) == [(3, False, [A])]


def test_a_stream_goes_on_after_a_rollback_of_rows_that_it_has_not_read(table):
    stream = table.table.stream("from-snapshot", snapshot=1)
    assert listed(stream.poll()) == [A]
    table.table.rollback(snapshot=1, as_latest=False)
    assert stream.poll() is None
    table.commit(C)
    assert drained(stream) == [(2, False, [C])]


def test_a_stream_goes_on_if_the_snapshot_that_it_has_read_expires(table):
    stream = table.table.stream(consumer="job")
    drained(stream)
    table.commit(A)
    for number in (1, 2, 3):
        table.expire(number)
    assert stream.poll().snapshot_id == 4
    stream.acknowledge()
    assert table.table.consumers.list()[0].next_snapshot == 5


def test_snapshots_without_changes_are_passed_over(table):
    table.table.write(table.table.scan().to_arrow(), overwrite={})
    table.commit(("+I", 9, "z"))
    stream = table.table.stream("from-snapshot", snapshot=4)
    assert drained(stream) == [(5, False, [("+I", 9, "z")])]


def test_a_stream_of_a_table_with_changelog_reads_that():
    table = KeyedRows({"changelog-producer": "input"})
    table.commit(A, ("-U", 1, "a"), ("+U", 1, "b"))
    stream = table.table.stream("from-snapshot", snapshot=1)
    assert drained(stream) == [(1, False, [A, ("-U", 1, "a"), ("+U", 1, "b")])]


def test_a_stream_reads_the_commits_from_before_the_producer_input(table):
    stream = table.table.stream("from-snapshot", snapshot=2, consumer="job")
    assert drained(stream) == [(2, False, [B]), (3, False, [C])]
    stream.acknowledge()
    table.commit(A)
    table.table.compact()
    table.table.truncate()
    altered = table.catalog.alter_table("shop.t", lake.set_option("changelog-producer", "input"))
    table.table = altered
    table.commit(B)
    assert drained(altered.stream(consumer="job")) == [(4, False, [A]), (7, False, [B])]


def with_option(table: KeyedRows, name: str, value: str) -> lake.Table:
    table.table = table.catalog.alter_table("shop.t", lake.set_option(name, value))
    return table.table


@pytest.mark.parametrize("producer", ["lookup", "full-compaction", "input"])
@pytest.mark.parametrize("bucket", ["1", "-2"])
def test_a_running_stream_delivers_the_rows_after_a_change_to_no_producer(producer, bucket):
    table = KeyedRows({"changelog-producer": producer, "bucket": bucket})
    table.commit(A)
    table.table.compact(strategy="full")
    opened = table.table
    stream = opened.stream()
    assert [rows for _, _, rows in drained(stream)] == [[A]]
    with_option(table, "changelog-producer", "none")
    last = table.commit(B)
    changes = opened.changes(last - 1, last)
    assert listed(changes) == [row for part in changes.parts() for row in listed(part)] == [B]
    table.table.compact(strategy="full")
    newest = table.commit(C)
    assert [rows for _, _, rows in drained(stream)] == [[B], [C]]
    assert sorted(listed(opened.stream().poll())) == [B, C]
    assert opened.state_scan(newest).to_arrow().num_rows == 2


@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("way", ["write", "messages"])
def test_a_stream_delivers_the_rows_of_writers_from_before_the_producer_input(producer, way):
    table = KeyedRows({"changelog-producer": producer})
    opened = table.table
    data = pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]})
    altered = with_option(table, "changelog-producer", "input")
    if way == "write":
        opened.write(data)
    else:
        writer = opened.new_writer()
        writer.write(data)
        altered.commit(writer.prepare())
    table.table.compact(strategy="full")
    table.commit(B)
    for each in (opened, altered):
        stream = each.stream("from-snapshot", snapshot=1)
        assert [rows for _, _, rows in drained(stream)] == [[A], [B]]
    changes = altered.changes(0)
    assert listed(changes) == [A, B]
    assert [row for part in changes.parts() for row in listed(part)] == [A, B]


def test_a_stream_passes_over_commits_of_postponed_rows_whose_changelog_follows():
    table = KeyedRows({"changelog-producer": "input", "bucket": "-2"})
    table.commit(A)
    stream = table.table.stream("from-snapshot", snapshot=1)
    assert drained(stream) == []
    table.table.compact(strategy="full")
    assert [rows for _, _, rows in drained(stream)] == [[A]]


@pytest.mark.parametrize("producer", ["lookup", "input"])
def test_a_running_stream_goes_on_after_a_change_from_no_producer(table, producer):
    stream = table.table.stream()
    drained(stream)
    with_option(table, "changelog-producer", producer)
    table.commit(A)
    table.table.compact(strategy="full")
    table.commit(B)
    assert [rows for _, _, rows in drained(stream)] == [[A], [B]]


@pytest.mark.parametrize("keyed", [True, False])
def test_a_running_stream_includes_overwrites_from_when_this_is_asked(keyed):
    table = KeyedRows(keyed=keyed)
    table.commit(A)
    stream = table.table.stream()
    drained(stream)
    kind = "" if keyed else "append-"
    with_option(table, f"streaming-read-{kind}overwrite", "true")
    table.table.write(table.table.scan().to_arrow(), overwrite={})
    assert [rows for _, _, rows in drained(stream)] == [[("-D", 1, "a"), A] if keyed else [A]]


@pytest.mark.parametrize(
    "start",
    [
        {"mode": "latest-full"},
        {"mode": "compacted-full"},
        {"mode": "from-snapshot-full", "snapshot": 1},
    ],
)
@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rows_that_wait_for_their_changelog_are_not_told_twice(producer, start):
    """Otherwise the reader would keep a row forever that was deleted before its compaction."""
    table = KeyedRows({"changelog-producer": producer})
    table.commit(A)
    stream = table.table.stream(**start)
    assert [rows for _, _, rows in drained(stream)] == [[]]
    table.commit(("-D", 1, "a"), C)
    table.table.compact()
    assert [rows for _, _, rows in drained(stream)] == [[C]]


def test_a_compacted_start_is_the_newest_compaction(table):
    storage, layout = table.place
    content = storage.read(layout.snapshot(2)).replace(b'"APPEND"', b'"COMPACT"')
    storage.overwrite(layout.snapshot(2), content)
    assert read_snapshot(storage, layout, 2).commit_kind is lake.CommitKind.COMPACT
    found = drained(table.table.stream("compacted-full"))
    assert found == [(2, True, [B]), (3, False, [C])]


def test_columns_and_conditions_hold_for_all_that_comes(table):
    stream = table.table.stream(columns=["v"], where="k = 2")
    assert drained(stream) == [(3, True, [("+I", "c")])]
    table.commit(A, ("+I", 2, "d"))
    assert drained(stream) == [(4, False, [("+I", "d")])]


def test_a_consumer_goes_on_where_it_acknowledged(table):
    def stream(**start):
        return table.table.stream(**start, consumer="job")

    first = stream(mode="from-snapshot", snapshot=1)
    assert first.poll().snapshot_id == 1
    first.acknowledge()
    assert first.poll().snapshot_id == 2
    storage, layout = table.place
    assert read_consumer(storage, layout, "job", lake.Environment()) == Consumer("job", 2)
    # It was lost before it acknowledged the second: its successor gets that again.
    assert [found.snapshot_id for found in stream()] == [2, 3]


def test_progress_of_a_consumer_counts_more_than_the_start(table):
    storage, layout = table.place
    write_consumer(storage, layout, Consumer("job", 3))
    assert drained(table.table.stream(consumer="job")) == [(3, False, [C])]


def test_all_rows_are_acknowledged_only_after_they_were_handed_out(table):
    stream = table.table.stream(consumer="job")
    stream.acknowledge()
    storage, layout = table.place
    assert read_consumer(storage, layout, "job", lake.Environment()) is None
    stream.poll()
    stream.acknowledge()
    assert read_consumer(storage, layout, "job", lake.Environment()) == Consumer("job", 4)


def test_without_a_consumer_nothing_can_be_acknowledged(table):
    with pytest.raises(lake.InvalidRequestError, match="no consumer"):
        table.table.stream().acknowledge()


@pytest.mark.parametrize(
    "start",
    [
        {"mode": "newest"},
        {"mode": "from-snapshot"},
        {"mode": "latest", "snapshot": 1},
        {"mode": "from-timestamp"},
        {"mode": "latest-full", "as_of": 0},
        {"consumer": "a/b"},
        {"mode": "from-timestamp", "as_of": "noon"},
    ],
)
def test_a_start_that_says_too_little_or_too_much_is_refused(table, start):
    with pytest.raises(lake.InvalidRequestError):
        table.table.stream(**start)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("reader", ["stream", "scan"])
@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "input"},
        {"merge-engine": "first-row"},
        {"bucket": "-2"},
        {"bucket": "-2", "deletion-vectors.enabled": "true"},
        {"bucket": "-2", "changelog-producer": "input"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        {"merge-engine": "first-row", "changelog-producer": "lookup"},
        {"bucket": "-2", "changelog-producer": "full-compaction"},
    ],
    ids=lambda options: " ".join(f"{key}={value}" for key, value in options.items()),
)
def test_rows_that_wait_for_a_compaction_are_in_the_state_or_in_the_changes(options, reader):
    rows = KeyedRows(options)
    for commit in ([(1, "a"), (2, "b")], [(2, "c"), (3, "d")]):
        rows.commit(*(("+I", *row) for row in commit))
        if commit[0] == (1, "a"):
            rows.table.compact()
    stream = rows.table.stream()
    told = [each for _, _, found in drained(stream) for each in found]
    if reader == "scan":
        scan = rows.table.state_scan(rows.table.latest_snapshot().id, where="v > ' '")
        told = [("+I", row["k"], row["v"]) for row in scan.to_arrow().to_pylist()]
    rows.table.compact()
    told += [each for _, _, found in drained(stream) for each in found]
    seen = dict[int, str]()
    for kind, key, value in told:
        if kind in ("-U", "-D"):
            seen.pop(key)
        elif options.get("merge-engine") != "first-row":
            seen[key] = value
        else:
            seen.setdefault(key, value)
    assert seen == {row["k"]: row["v"] for row in rows.table.scan().to_arrow().to_pylist()}
    assert len(seen) == 3
