"""Automatic tags: which are due, and what they are called."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.tags.due import Timed, Timeline, surplus
from lakeformat.paimon.tags.period import period_of

HOURLY = {"tag.creation-period": "hourly", "tag.creation-delay": "10 min"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2024-01-31 {text}")


def due(times: list[str], *, completes: bool = False, **options: str) -> list[tuple[str, int]]:
    """The tags for snapshots 1, 2, … committed at these times of one day."""
    declared = TableOptions({**HOURLY, **options})
    timeline = Timeline(
        period_of(declared),
        timedelta(milliseconds=declared.tag_creation_delay_millis),
        completes,
    )
    snapshots = [Timed(number, at(each)) for number, each in enumerate(times, 1)]
    return [
        (tag.name.removeprefix("2024-01-31 "), tag.snapshot_id) for tag in timeline.due(snapshots)
    ]


TIMES = ["12:12", "13:05", "13:10", "16:12", "16:20", "16:30"]


def test_a_tag_is_made_by_the_first_commit_after_its_period_and_the_delay():
    assert due(TIMES) == [("11", 1), ("12", 3), ("15", 4)]


def test_periods_without_a_commit_are_filled_up_by_those_that_follow():
    found = due(TIMES, completes=True)
    assert found == [("11", 1), ("12", 3), ("13", 4), ("14", 5), ("15", 6)]


def test_a_snapshot_without_a_time_makes_no_tag():
    timeline = Timeline(period_of(TableOptions({})), timedelta(0), completes=False)
    assert timeline.due([Timed(1, None)]) == []


def test_what_was_made_before_is_not_made_again():
    declared = TableOptions(HOURLY)
    period = period_of(declared)
    timeline = Timeline(period, timedelta(minutes=10), completes=False, next_start=at("13:00"))
    later = [Timed(3, at("13:10")), Timed(4, at("14:10"))]
    assert [tag.snapshot_id for tag in timeline.due(later)] == [4]
    assert timeline.due(later, taken=["2024-01-31 13"]) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "2024-01-31"),
        ({"tag.period-formatter": "without_dashes"}, "20240131"),
        ({"tag.creation-period": "hourly"}, "2024-01-31 23"),
        (
            {"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes"},
            "20240131 23",
        ),
        (
            {
                "tag.creation-period": "hourly",
                "tag.period-formatter": "without_dashes_and_spaces",
            },
            "2024013123",
        ),
        ({"tag.creation-period": "two-hours"}, "2024-01-31 22"),
        ({"tag.creation-period-duration": "15 min"}, "202401312345"),
    ],
)
def test_a_period_has_one_name_and_the_name_leads_back_to_it(options, name):
    period = period_of(TableOptions(options))
    start = period.floor(at("23:59:30"))
    assert period.name(start) == name
    assert period.start_of(name) == start


@pytest.mark.parametrize("name", ["v1", "2024-1-31", "2024-01-31 5", "20240131", "batch-write-x"])
def test_other_names_are_no_automatic_ones(name):
    assert period_of(TableOptions({"tag.creation-period": "daily"})).start_of(name) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"tag.creation-period": "daily", "tag.creation-delay": "1500 min"},
            "'tag.creation-delay' is 25 h, but must be shorter than the period of the tags, 1 d:",
        ),
        ({"tag.creation-delay": "1 d"}, "'tag.creation-delay' is 1 d, .* 1 d: lower the delay"),
        (
            {"tag.creation-period": "hourly", "tag.creation-delay": "60 min"},
            "'tag.creation-delay' is 1 h, .* 1 h: lower the delay",
        ),
        ({"tag.creation-period-duration": "0 ms"}, "'tag.creation-period-duration' is 0 ms"),
    ],
)
def test_a_delay_as_long_as_the_period_is_refused(options, words):
    with pytest.raises(InvalidRequestError, match=words):
        period_of(TableOptions(options))


def test_the_oldest_beyond_the_number_go():
    assert surplus(["a", "b", "c"], 2) == ["a"]
    assert surplus(["a"], 2) == []
    assert surplus(["a", "b"], None) == []


@pytest.mark.parametrize(
    ("zone", "text"), [("UTC", "+00:00"), ("GMT-08:00", "-08:00"), ("Europe/Berlin", "+01:00")]
)
def test_time_zones_are_named_as_java_names_them(zone, text):
    found = TableOptions({"sink.process-time-zone": zone}).sink_process_time_zone
    assert at("12:00").replace(tzinfo=found).isoformat().endswith(text)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "+25:00", "/etc/localtime"])
def test_a_time_zone_nobody_knows_is_refused(zone):
    with pytest.raises(InvalidRequestError, match="no such time zone"):
        TableOptions({"sink.process-time-zone": zone}).validate()
