"""The minimum age of an orphan, and the reasons that change it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

import lakeformat as lake
from lakeformat.tables.age_floor import find_floor

DAY = 86_400_000
NOON = 1_700_000_000_000


def test_a_time_in_the_future_is_refused():
    for moment in (NOON + 1, datetime(2030, 1, 1, tzinfo=UTC), timedelta(seconds=-1)):
        with pytest.raises(
            lake.InvalidRequestError, match=r"older_than is .*, which is in the future"
        ):
            find_floor(NOON, older_than=moment, allow_younger=True)
    with pytest.raises(
        lake.InvalidRequestError, match=r"running_since is .*, which is in the future"
    ):
        find_floor(NOON, running_since=NOON + 1)


@pytest.mark.parametrize("asked", [NOON, timedelta(hours=23), "23 h", NOON - DAY + 1])
def test_less_than_a_day_needs_another_word_and_that_is_told(asked, caplog):
    with pytest.raises(
        lake.InvalidRequestError, match="files newer than one day are kept for writes"
    ):
        find_floor(NOON, older_than=asked)
    with caplog.at_level(logging.WARNING):
        floor = find_floor(NOON, older_than=asked, allow_younger=True)
    assert "allow_younger overrides the age limit" in caplog.text
    assert "is after" in floor.override


@pytest.mark.parametrize(
    ("asked", "millis"),
    [
        (None, NOON - DAY),
        ("3 d", NOON - 3 * DAY),
        (timedelta(days=1), NOON - DAY),
        (NOON - 5 * DAY, NOON - 5 * DAY),
        ("2023-11-01", 1_698_796_800_000),
        (datetime(2023, 11, 1, tzinfo=UTC), 1_698_796_800_000),
    ],
)
def test_the_floor_is_a_time_or_an_age(asked, millis):
    floor = find_floor(NOON, older_than=asked)
    assert (floor.millis, floor.override) == (millis, None)


def test_what_is_neither_is_refused():
    with pytest.raises(
        lake.InvalidRequestError, match=r"older_than must be a time such as .* or an age"
    ):
        find_floor(NOON, older_than="yesterday")


def test_after_a_write_that_began_long_ago_the_same_words_are_needed():
    with pytest.raises(lake.InvalidRequestError, match="a write has been in progress since"):
        find_floor(NOON, older_than="2 d", running_since=NOON - 3 * DAY)
