"""Appends between two snapshots of golden Iceberg tables are those that Java reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import lakeformat as lake
from lakeformat.errors import NotFoundError
from lakeformat.iceberg.read.appends import AppendedRows, snapshots_between
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.rows.conditions.filter import bind_predicate
from tests.conformance.iceberg.test_golden_rows import opened, rows_of
from tests.golden.iceberg import ICEBERG_TABLES, iceberg_table
from tests.golden.iceberg_values import sorted_rows

WINDOWS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in ICEBERG_TABLES
    for number in range(len(iceberg_table(name).expected.get("incremental") or ()))
]


def appended(name: str, after: int | None, upto: int, where: str | None = None) -> AppendedRows:
    _, metadata, places = opened(name)
    window = snapshots_between(metadata, after, upto)
    snapshots = [each for each in window if each.operation == "append"]
    state = find_state(places, metadata, branch="main")
    asked = None if where is None else bind_predicate(where, condition_fields(state.schema))
    return AppendedRows(state, snapshots, None, asked)


@pytest.mark.parametrize(("name", "number"), WINDOWS)
def test_a_window_has_the_rows_that_java_reads(name, number):
    table, metadata, _ = opened(name)
    window = table.expected["incremental"][number]
    upto = window["to_snapshot_id_inclusive"] or metadata.current_snapshot_id
    ends = window["from_snapshot_id_exclusive"], upto
    if "error" in window:
        with pytest.raises(NotFoundError, match="is not among the ancestors"):
            appended(name, *ends)
        return
    found = appended(name, *ends)
    assert rows_of(found) == sorted_rows(window["rows"])
    files = sorted(table.relative(split.file.path) for split in found.splits())
    assert files == sorted(window["java_incremental_append_files"])
    assert found.count() == len(window["rows"])


def commit_times() -> list[int]:
    return [each["timestamp_ms"] for each in opened("six_commits")[0].expected["snapshots"]]


def in_time(start: int, end: int) -> list[int]:
    """The commits whose rows a window of time has."""
    table = lake.open_table(iceberg_table("six_commits").location)
    found = table.changes(moment(start), moment(end), mode="appends")
    return sorted(set(found.to_arrow().column("commit_no").to_pylist()))


def moment(millis: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


def test_windows_of_time_next_to_each_other_have_each_append_once():
    """The second window begins where the first one ended, between two commits."""
    times = commit_times()
    assert in_time(times[0] + 1, times[3] - 1) == [1, 2]
    assert in_time(times[3] - 1, times[4]) == [3, 4]
    assert in_time(times[0] - 1, times[5]) == [0, 1, 2, 3, 4, 5]


def test_windows_by_time_are_those_of_java():
    for window in opened("six_commits")[0].expected["windows_by_time"]:
        if "error" in window:  # an empty window, which Java refuses
            continue
        expected = sorted({row["commit_no"] for row in window["changelog_rows"]})
        assert in_time(window["start_ms"], window["end_ms"]) == expected


def test_conditions_skip_appended_files():
    _, metadata, _ = opened("six_commits")
    ids = [each.snapshot_id for each in metadata.snapshots]
    found = appended("six_commits", ids[0], ids[-1], "id = 25")
    assert found.to_arrow().column("id").to_pylist() == [25]
    plan = found.explain()
    assert (plan.files, plan.files_to_read) == (5, 1)


def test_the_beginning_of_an_expired_history_is_not_known():
    _, metadata, _ = opened("expired")
    head = metadata.current_snapshot_id
    assert head is not None
    with pytest.raises(NotFoundError, match="have expired"):
        snapshots_between(metadata, None, head)
    table = lake.open_table(iceberg_table("expired").location)
    with pytest.raises(NotFoundError, match="have expired"):
        table.changes(moment(0), mode="appends")
