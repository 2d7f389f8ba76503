"""Times out of the values of partitions: patterns, formats, and texts that are no times."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.tables.time_format import fill_pattern, time_format


@pytest.mark.parametrize(
    ("formatter", "text", "time"),
    [
        ("", "2024-01-31", datetime(2024, 1, 31)),
        ("", "2024-1-3", datetime(2024, 1, 3)),
        ("", "2024-01-31 10:20:30", datetime(2024, 1, 31, 10, 20, 30)),
        ("", "2024-01-31 1:2:3.5", datetime(2024, 1, 31, 1, 2, 3, 500_000)),
        ("yyyyMMdd", "20240131", datetime(2024, 1, 31)),
        ("yyyyMMddHH", "2024013107", datetime(2024, 1, 31, 7)),
        ("yyyy-MM-dd'T'HH:mm", "2024-01-31T07:08", datetime(2024, 1, 31, 7, 8)),
        ("d/M/yyyy", "3/1/2024", datetime(2024, 1, 3)),
        ("yyMMdd", "240131", datetime(2024, 1, 31)),
        ("yyyy-MM-dd[ HH]", "2024-01-31", datetime(2024, 1, 31)),
        ("yyyy-MM-dd[ HH]", "2024-01-31 09", datetime(2024, 1, 31, 9)),
        (
            "yyyy-MM-dd HH:mm:ss.SSS",
            "2024-01-31 00:00:00.123",
            datetime(2024, 1, 31, 0, 0, 0, 123000),
        ),
        ("yyyy''MM''dd", "2024'01'31", datetime(2024, 1, 31)),
    ],
)
def test_a_text_says_a_time(formatter, text, time):
    assert time_format(formatter).parse(text) == time


@pytest.mark.parametrize(
    ("formatter", "text"),
    [
        ("", "junk"),
        ("", ""),
        ("", "2024-13-01"),
        ("", "2024-02-30"),
        ("", "2024-01-31x"),
        ("", "2024-01-31 10:20"),
        ("yyyyMMdd", "2024-01-31"),
        ("yyyyMMdd", "2024013"),
    ],
)
def test_a_text_that_does_not_fit_says_none(formatter, text):
    assert time_format(formatter).parse(text) is None


@pytest.mark.parametrize(
    ("formatter", "why"),
    [
        ("yyyy-MM", "no day"),
        ("HH:mm", "no year"),
        ("yyyy-MM-dd EEE", "'E'"),
        ("yyyy-MM-dd'T", "not closed"),
        ("yyyy-MM-dd[ HH", "a bracket has no partner"),
        ("yyyy-MM-dd yyyy", "appears twice"),
    ],
)
def test_a_formatter_without_meaning_is_refused_by_name(formatter, why):
    with pytest.raises(lake.InvalidRequestError, match=r"partition\.timestamp-formatter") as error:
        time_format(formatter)
    assert why in str(error.value)


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 1, 1)))
def test_what_sql_writes_is_read_back(time):
    assert time_format("").parse(str(time.replace(microsecond=0))) == time.replace(microsecond=0)
    assert time_format("yyyyMMddHHmmss").parse(time.strftime("%Y%m%d%H%M%S")) == time.replace(
        microsecond=0
    )


def test_a_pattern_puts_values_together():
    values = {"dt": "2024-01-31", "h": "7", "hour": "8"}
    assert fill_pattern("", values) == "2024-01-31"
    assert fill_pattern("$dt $hour:00:00", values) == "2024-01-31 8:00:00"
    assert fill_pattern("$dt $h:00:00", values) == "2024-01-31 7:00:00"


def test_a_null_in_a_pattern_makes_no_time():
    assert fill_pattern("$dt $h:00:00", {"dt": None, "h": "1"}) is None
    assert fill_pattern("", {"dt": None, "h": "1"}) is None
    assert fill_pattern("$h", {"dt": None, "h": "1"}) == "1"


def test_a_pattern_that_names_no_column_is_refused():
    with pytest.raises(lake.InvalidRequestError, match=r"names no partition column.*\$dt"):
        fill_pattern("2024-01-01", {"dt": "x"})
