"""Time travel: the snapshot of a number, a tag, a time or a watermark, and nothing in between."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

import lakeformat as lake
from tests.keyed_rows import MINUTE, KeyedRows, listed


@pytest.fixture
def table() -> KeyedRows:
    """Three snapshots, a minute apart, the first at 00:01; the watermark comes late."""
    table = KeyedRows()
    table.commit(("+I", 1, "a"))
    table.commit(("+I", 1, "b"), watermark=500)
    table.commit(("-D", 1, "b"), watermark=900)
    table.tag("v1", 1)
    return table


def at(minute: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(minutes=minute)


@pytest.mark.parametrize(
    ("where_to", "rows"),
    [
        ({}, []),
        ({"snapshot": 1}, [(1, "a")]),
        ({"snapshot": 3}, []),
        ({"tag": "v1"}, [(1, "a")]),
        ({"as_of": at(1)}, [(1, "a")]),
        ({"as_of": at(2.99)}, [(1, "b")]),
        ({"as_of": at(2).replace(tzinfo=UTC)}, [(1, "b")]),
        ({"as_of": datetime(1970, 1, 1, 2, 2, tzinfo=timezone(timedelta(hours=2)))}, [(1, "b")]),
        ({"as_of": "1970-01-01T00:02:30Z"}, [(1, "b")]),
        ({"as_of": "1970-01-01 00:01:00"}, [(1, "a")]),
        ({"as_of": 2 * MINUTE}, [(1, "b")]),
        ({"as_of": 1 << 60}, []),
        ({"watermark": -5}, [(1, "b")]),
        ({"watermark": 500}, [(1, "b")]),
        ({"watermark": 501}, []),
    ],
)
def test_a_snapshot_is_named_in_four_ways(table, where_to, rows):
    assert listed(table.table.scan(**where_to)) == rows


@pytest.mark.parametrize(
    ("where_to", "error", "told"),
    [
        ({"snapshot": 4}, lake.NotFoundError, "snapshots 1 to 3 exist"),
        ({"snapshot": True}, lake.InvalidRequestError, "must be a snapshot number"),
        ({"snapshot": "1"}, lake.InvalidRequestError, "must be a snapshot number"),
        ({"tag": "v2"}, lake.NotFoundError, "its tags are 'v1'"),
        ({"tag": 1}, lake.InvalidRequestError, "tag must be a str"),
        (
            {"as_of": at(0.5)},
            lake.NotFoundError,
            "from 1970-01-01 00:00:30.000Z or before; the oldest is snapshot 1 from 1970-01-01 "
            "00:01",
        ),
        ({"as_of": "yesterday"}, lake.InvalidRequestError, "a time must be .* got 'yesterday'"),
        ({"as_of": 1.5}, lake.InvalidRequestError, "a time must be a datetime"),
        (
            {"watermark": 901},
            lake.NotFoundError,
            "watermark 901 or later; the oldest is snapshot 1 without watermark, the newest is "
            "snapshot 3 with watermark 900",
        ),
        ({"watermark": "500"}, lake.InvalidRequestError, "watermark must be a number"),
        (
            {"snapshot": 1, "tag": "v1"},
            lake.InvalidRequestError,
            "pass only one of snapshot=1, tag='v1'",
        ),
        (
            {"as_of": 0, "watermark": 0},
            lake.InvalidRequestError,
            "pass only one of as_of=0, watermark=0",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(table, where_to, error, told):
    with pytest.raises(error, match=told):
        table.table.scan(**where_to)


def test_a_table_without_snapshot_has_no_past():
    with pytest.raises(lake.NotFoundError, match="no snapshot yet"):
        KeyedRows().table.scan(as_of=5)


def test_the_only_snapshot_is_named_once(table):
    table.expire(1)
    table.expire(2)
    with pytest.raises(lake.NotFoundError, match="or before; the only one is snapshot 3 from"):
        table.table.scan(as_of=at(0.5))


def test_expired_snapshots_are_no_answer_but_their_tag_is(table):
    table.expire(1)
    with pytest.raises(lake.NotFoundError, match="the oldest is snapshot 2"):
        table.table.scan(as_of=at(1))
    assert listed(table.table.scan(tag="v1")) == [(1, "a")]


def test_an_old_snapshot_has_the_columns_of_its_time(table):
    altered = table.catalog.alter_table("shop.t", lake.rename_column("v", "w"))
    assert altered.scan(snapshot=1, where="v = 'a'").schema.names == ["k", "v"]
    with pytest.raises(
        lake.InvalidRequestError, match="'v', which is not a column; the columns are k, w"
    ):
        altered.scan(where="v = 'a'")


@pytest.mark.parametrize(("limit", "found"), [(None, 3), (0, 0), (2, 2), (9, 3)])
def test_a_limit_is_the_most_that_comes(limit, found):
    table = KeyedRows()
    table.commit(("+I", 1, "a"), ("+I", 2, "b"))
    table.commit(("+I", 1, "c"), ("+I", 3, "d"))
    assert table.table.scan(limit=limit).to_arrow().num_rows == found


@pytest.mark.parametrize("limit", [-1, True, "1"])
def test_a_limit_is_a_number(limit):
    with pytest.raises(lake.InvalidRequestError, match="limit must be a whole number of rows"):
        KeyedRows().table.scan(limit=limit)


@pytest.fixture
def by_day() -> lake.Table:
    table = KeyedRows(partitioned=True)
    table.commit(("+I", "mon", 1, "a"), ("+I", "tue", 1, "b"), ("+I", "wed", 2, "c"))
    return table.table


@pytest.mark.parametrize(
    ("partitions", "values"),
    [
        ({"p": "tue"}, ["b"]),
        ([{"p": "tue"}, {"p": "wed"}], ["b", "c"]),
        ([], []),
        ({}, ["a", "b", "c"]),
        ({"p": None}, []),
    ],
)
def test_partitions_are_named_by_their_values(by_day, partitions, values):
    scan = by_day.scan(["v"], partitions=partitions)
    assert sorted(v for [v] in listed(scan)) == values
    assert sum(len(split.files) for split in scan.splits()) == len(values)
    both = by_day.scan(["v"], partitions=partitions, where="k = 2 AND v <> 'z'")
    assert listed(both) == [("c",)] * ("c" in values)


@pytest.mark.parametrize("partitions", ["tue", 5, [5], {"k": 1}])
def test_what_is_no_partition_is_refused(by_day, partitions):
    with pytest.raises(lake.InvalidRequestError):
        by_day.scan(partitions=partitions)


_NAMED = {
    "scan": lambda table, at: table.scan(snapshot=at),
    "state_scan": lambda table, at: table.state_scan(at),
    "changes after": lambda table, at: table.changes(at),
    "changes after a text": lambda table, at: table.changes(str(at)),
    "changes upto": lambda table, at: table.changes(0, at),
    "diff": lambda table, at: table.changes(at, mode="diff"),
    "stream": lambda table, at: table.stream("from-snapshot", snapshot=at),
    "full stream": lambda table, at: table.stream("from-snapshot-full", snapshot=at),
    "tag": lambda table, at: table.tags.create("new", snapshot=at),
    "branch": lambda table, at: table.branches.create("new", snapshot=at),
    "rollback": lambda table, at: table.rollback(snapshot=at),
    "cut": lambda table, at: table.rollback(snapshot=at, as_latest=False),
}
_REMOVED = "belongs to a history that a rollback removed"


@pytest.mark.parametrize("call", _NAMED.values(), ids=_NAMED)
def test_a_position_of_a_removed_snapshot_names_no_other_snapshot(table, call):
    removed = table.table.position()
    table.table.rollback(snapshot=1, as_latest=False)
    with pytest.raises(lake.NotFoundError, match=r"snapshot|position"):
        call(table.table, removed)
    for row in (("+I", 2, "x"), ("+I", 3, "y")):
        table.commit(row)
    before = table.table.position()
    with pytest.raises(lake.NotFoundError, match=_REMOVED):
        call(table.table, removed)
    assert table.table.position().is_exactly(before)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("named", ["kept", "without identity"])
@pytest.mark.parametrize("call", _NAMED.values(), ids=_NAMED)
def test_other_positions_are_accepted_after_a_rollback(table, call, named):
    number = 1 if named == "kept" else 2
    at = table.table.snapshot(number).position
    table.table.rollback(snapshot=1, as_latest=False)
    for row in (("+I", 2, "x"), ("+I", 3, "y")):
        table.commit(row)
    call(table.table, at if named == "kept" else replace(at, identity=None))


def test_an_expired_snapshot_was_not_removed_by_a_rollback(table):
    expired = table.table.snapshot(1).position
    table.expire(1)
    assert len(listed(table.table.changes(expired))) == 2
    stream = table.table.stream("from-snapshot", snapshot=expired)
    assert [each.snapshot_id for each in stream] == [2, 3]
    with pytest.raises(lake.NotFoundError, match=r"does not exist or has expired"):
        table.table.scan(snapshot=expired)
    table.table.branches.create("new", snapshot=expired)  # its tag keeps it
