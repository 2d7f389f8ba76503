"""The rules of retention: numbers and times in, how many go out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.consumers import Guard
from lakeformat.paimon.expire.retention import (
    Retention,
    changelog_retention,
    is_decoupled,
    select_changelogs,
    select_snapshots,
    snapshot_retention,
)
from lakeformat.paimon.options import TableOptions

HOUR = 3_600_000
FAR = 2**31 - 1


def at(text: str) -> int:
    hour, minute = map(int, text.split(":"))
    return int(datetime(2024, 1, 1, hour, minute, tzinfo=UTC).timestamp() * 1000)


def test_the_example_of_the_documentation_by_the_time_of_the_next_snapshot():
    """Keep 2 to 5 snapshots and an hour; 1 is kept at 11:20: 2 is not more than an hour old."""
    times = ["10:00", "10:20", "10:40", "11:00", "11:20", "11:30", "11:35", "11:36"]
    kept: list[int] = []
    history = []
    for number, time in enumerate(times, start=1):
        kept.append(number)
        retention = Retention(5, 2, at(time) - HOUR, FAR)
        selected = select_snapshots(kept, lambda n: at(times[n - 1]), retention)
        kept = kept[selected.count :]
        history.append((kept[0], kept[-1]))
    assert history == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 6), (3, 7), (4, 8)]


def test_no_time_is_read_of_what_goes_by_number():
    def never(number: int) -> int:
        raise AssertionError("asked for the time of a snapshot that goes whatever it is")

    assert select_snapshots(range(1, 11), never, Retention(1, 1, 0, FAR)).count == 9


@given(
    ids=st.lists(st.integers(1, 60), min_size=1, unique=True).map(sorted),
    times=st.lists(st.integers(0, 100), min_size=61, max_size=61),
    retain=st.tuples(st.integers(1, 20), st.integers(1, 20)).map(sorted),
    older_than=st.integers(0, 101),
    limit=st.integers(1, 30),
    guard=st.none() | st.integers(1, 61),
)
def test_whatever_clocks_say_the_numbers_hold(ids, times, retain, older_than, limit, guard):
    least, most = retain
    watcher = None if guard is None else Guard("consumer 'c'", guard)
    selected = select_snapshots(
        ids, times.__getitem__, Retention(most, least, older_than, limit), watcher
    )
    gone, left = ids[: selected.count], ids[selected.count :]
    assert len(left) >= min(least, len(ids))
    assert len(gone) <= limit
    assert guard is None or all(number < guard for number in gone)
    by_age = gone[max(len(ids) - most, 0) :]
    assert all(times[ids[ids.index(number) + 1]] < older_than for number in by_age)
    if len(left) > most:  # more than there may be: something else keeps the next one
        assert len(gone) == limit or left[0] == guard or (guard or 99) <= left[0]
    assert selected.reason


def test_a_younger_clock_stops_at_the_first_that_is_not_old_enough():
    times = {1: 10, 2: 20, 3: 5, 4: 30}  # the committer of 3 had a slow clock
    selected = select_snapshots([1, 2, 3, 4], times.get, Retention(FAR, 1, 15, FAR))
    assert selected.count == 0  # 2 came at 20


def test_changelogs_go_by_their_own_time_and_the_newest_stays():
    times = {1: 10, 2: 20, 3: 30, 4: 40}
    select = lambda older_than, guard=None: select_changelogs(  # noqa: E731 - a short name
        [1, 2, 3, 4], 9, times.get, Retention(FAR, 1, older_than, FAR), guard
    )
    assert select(25).count == 2
    assert select(99).count == 3
    assert select(99, Guard("consumer 'c'", 2)).count == 1


@pytest.mark.parametrize(
    ("options", "decoupled"),
    [
        ({}, False),
        ({"changelog.time-retained": "1 h"}, False),
        ({"changelog.time-retained": "2 h"}, True),
        ({"changelog.num-retained.min": "11"}, True),
        ({"changelog.num-retained.max": "5"}, False),
        ({"changelog.num-retained.max": "5", "snapshot.num-retained.max": "4"}, True),
    ],
)
def test_changelogs_outlive_snapshots_where_one_of_their_options_is_larger(options, decoupled):
    assert is_decoupled(TableOptions(options)) is decoupled


def test_what_a_call_says_goes_before_what_the_table_says():
    options = TableOptions({"snapshot.num-retained.min": "3", "snapshot.expire.limit": "7"})
    found = snapshot_retention(options, 5 * HOUR, retain_max=4, older_than=2 * HOUR)
    assert found == Retention(4, 3, 2 * HOUR, 7)


def test_changelogs_are_kept_as_snapshots_where_nothing_else_is_said():
    options = TableOptions({"changelog.time-retained": "2 h", "snapshot.num-retained.min": "3"})
    assert changelog_retention(options, 5 * HOUR) == Retention(FAR, 3, 3 * HOUR, 50)


def test_changelog_options_that_contradict_each_other_are_refused():
    options = TableOptions({"changelog.num-retained.max": "5"})
    with pytest.raises(
        InvalidRequestError,
        match=r"changelog.num-retained.min is 10 and changelog.num-retained.max is 5",
    ):
        changelog_retention(options, HOUR)
