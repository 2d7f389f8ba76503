"""One way to write a past time, in every maintenance command."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.tables.past_time import past_millis

NOON = 1_700_000_000_000
DAY = 24 * 60 * 60 * 1000
OLDER_THAN = {
    "expire": ("expire", "shop.orders", "--older-than"),
    "tags": ("tag", "expire", "shop.orders", "--older-than"),
    "consumers": ("consumer", "expire", "shop.orders", "--older-than"),
    "partitions": ("partition", "expire", "shop.orders", "--older-than"),
    "orphans": ("orphans", "shop.orders", "--older-than"),
}
runner = CliRunner()


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("dt", "STRING")], partition_by=["dt"])
    table.write(pa.table({"dt": ["2020-01-01"]}))
    return catalog


def run(catalog: lake.Catalog, *arguments: str):
    return runner.invoke(app, ["-w", catalog.location, *arguments])


@pytest.mark.parametrize(
    ("asked", "millis"),
    [
        ("3 d", NOON - 3 * DAY),
        (timedelta(days=1), NOON - DAY),
        (NOON - 5, NOON - 5),
        ("2023-11-01", 1_698_796_800_000),
        ("2023-11-01T01:00+01:00", 1_698_796_800_000),
    ],
)
def test_a_time_and_an_age_are_both_understood(asked, millis):
    assert past_millis("older_than", asked, NOON) == millis


@pytest.mark.parametrize("command", OLDER_THAN.values(), ids=OLDER_THAN)
@pytest.mark.parametrize("said", ["2 d", "2024-01-31 10:00", "2024-01-31"])
def test_every_command_takes_both(catalog, command, said):
    shown = run(catalog, *command, said, "--dry-run")
    assert shown.exit_code == 0, shown.exception


@pytest.mark.parametrize("command", OLDER_THAN.values(), ids=OLDER_THAN)
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("7", "a number needs a unit, as in '7 d'"),
        ("1700000000000", "a number needs a unit"),
        ("1 M", "the unit M can mean minutes or months: write minutes with the unit m"),
        ("yesterday", "must be a time such as '2024-01-31 10:00'"),
        ("2999-01-01", "in the future"),
    ],
)
def test_every_command_refuses_the_same(catalog, command, said, answer):
    shown = run(catalog, *command, said, "--dry-run")
    assert isinstance(shown.exception, lake.InvalidRequestError), shown.output
    assert answer in str(shown.exception)
    assert "milliseconds since" not in str(shown.exception), "which the command does not take"


@pytest.mark.parametrize(
    "command",
    [
        ("tag", "create", "shop.orders", "v1", "--retain", "7"),
        ("compact", "shop.orders", "--idle", "7"),
    ],
    ids=["retain", "idle"],
)
def test_a_duration_without_a_unit_is_asked_for_one(catalog, command):
    """Options of tables read it as milliseconds, as Java does; a person who types it means days."""
    shown = run(catalog, *command)
    assert isinstance(shown.exception, lake.InvalidRequestError), shown.output
    assert "a number needs a unit, as in '7 d'" in str(shown.exception)


def test_an_option_without_a_unit_is_in_milliseconds(catalog):
    table = catalog.create_table(
        "shop.short", [("id", "BIGINT")], options={"snapshot.time-retained": "7"}
    )
    assert table.options.snapshot_time_retained_millis == 7


def test_a_rollback_goes_to_no_time_to_come(catalog):
    with pytest.raises(lake.InvalidRequestError, match=r"as_of is 2999-01-01 .* in the future"):
        catalog.table("shop.orders").rollback(as_of="2999-01-01", dry_run=True)
