"""Checks of the rows of Iceberg tables: those that a scan returns, of every type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import lakeformat as lake
from tests.golden.iceberg import iceberg_table


def opened(name: str) -> lake.IcebergTable:
    clock = lake.Environment(now_millis=lambda: 1_706_745_600_000)  # 2024-02-01
    table = lake.open_table(iceberg_table(name).location, environment=clock)
    assert isinstance(table, lake.IcebergTable)
    return table


def outcomes(report: lake.CheckReport) -> dict[str, str]:
    return {each.name: each.outcome for each in report.checks}


def test_deleted_rows_are_not_checked():
    table = opened("v3_deletion_vectors")
    report = table.check(min_rows=3, max_rows=3, unique=["id"], conditions=["id >= 3"])
    assert report.failed == ()
    assert report.snapshot_id == table.latest_snapshot().snapshot_id
    assert report.reason == "3 checks of 3 rows passed"


def test_a_repeated_value_is_found_in_two_files():
    rows = opened("six_commits").scan().to_arrow()
    assert len(rows) > len(rows["commit_no"].unique())
    [result] = opened("six_commits").check(unique=["commit_no"]).failed
    assert result.bad_rows == 60
    assert result.examples[0].startswith("commit_no=")


def test_conditions_choose_the_rows_to_check():
    report = opened("six_commits").check(accepted_values={"commit_no": [3]}, where="commit_no = 3")
    assert (report.rows, outcomes(report)) == (10, {"accepted_values(commit_no)": "passed"})
    report = opened("six_commits").check(conditions=["commit_no <> 3"], warn_only=["condition"])
    [warned] = report.warned
    assert warned.finding.startswith("10 of 60 rows do not meet the condition, such as id=")


@pytest.mark.parametrize("name", ["all_types", "java_types", "v3_types_defaults"])
def test_columns_of_every_type_are_checked(name):
    table = opened(name)
    rows = table.scan().to_arrow()
    plain = [field.name for field in rows.schema if not field.type.num_fields]
    checks: dict[str, Any] = {"not_null": rows.column_names, "unique": plain}
    for result in table.check(**checks).checks:
        [column] = result.columns
        values = rows.column(column)
        if result.name.startswith("not_null"):
            assert result.bad_rows == values.null_count, column
        else:
            known = values.drop_null().to_pylist()
            # -0.0 and 0.0 differ, and NaN equals NaN.
            assert result.bad_rows == sum(
                [repr(each) for each in known].count(repr(value)) > 1 for value in known
            ), column


def test_the_age_of_the_newest_time_is_checked():
    newest = opened("hour_action").scan(["event_time"]).to_arrow()["event_time"].to_pylist()
    [result] = opened("hour_action").check(freshness={"event_time": "1 d"}).failed
    shown = max(newest).replace(tzinfo=UTC) if max(newest).tzinfo is None else max(newest)
    assert f"{shown.astimezone(UTC):%Y-%m-%d %H:%M}" in result.finding
    assert shown < datetime(2024, 2, 1, tzinfo=UTC)


def test_a_column_that_is_missing_is_named_with_those_that_exist():
    with pytest.raises(lake.InvalidRequestError, match=r"'commit', which is not a column of .*id"):
        opened("six_commits").check(not_null=["commit"])
