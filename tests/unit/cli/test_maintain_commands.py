"""``lake maintain``: one command that maintains a table, and reports remaining problems."""

from __future__ import annotations

import json
import re
import shlex

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.tables.maintain.maintain_report import MaintainReport
from tests.crashed_writer import BUCKETS, MANY_COMMITS, crashed_table
from tests.expired import missing, unneeded
from tests.lake_command import lake_on_a_terminal, lake_refuses, lake_says


def cells(shown: str) -> dict[str, list[str]]:
    """The first grid by its row's name; columns have two blanks between."""
    rows = [[cell for cell in line.split("  ") if cell] for line in shown.splitlines()]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}


def test_a_newcomer_heals_the_table_of_a_crashed_writer_by_one_command(catalog):
    """With CRASHED_COMMITS=500 and CRASHED_BUCKETS=6 it is as large as a real one."""
    table = crashed_table(catalog, commits=MANY_COMMITS, consumer=None)
    shown = lake_says(catalog, "maintain", "shop.orders")
    found = cells(shown)

    files = f"{MANY_COMMITS * BUCKETS:,}"
    assert found["shop.orders"] == ["before", "now"]
    assert found["verdict"] == ["unhealthy", "healthy"]
    assert found["files"] == [files, str(BUCKETS)]
    assert found["files at level 0"] == [files, "0"]
    assert found["snapshots"] == [str(MANY_COMMITS), "10"]
    assert found["orphan files"] == ["30", "0"]
    assert found["compact"][0] == "done"
    assert shown.endswith("\nshop.orders is healthy\n")
    assert (missing(table), unneeded(table)) == (set(), set())


def test_the_same_table_with_a_stuck_consumer_takes_the_command_that_the_first_run_names(catalog):
    table = crashed_table(catalog, commits=MANY_COMMITS)
    shown = lake_says(catalog, "maintain", "shop.orders", code=4)
    [named] = re.findall(r"has ended for good, lake (.* maintain .*)", shown)
    lake_says(catalog, *shlex.split(named))
    assert lake_says(catalog, "maintain", "shop.orders").endswith("shop.orders is healthy\n")
    assert len(table.snapshots()) == 10
    assert (missing(table), unneeded(table)) == (set(), set())


def test_a_stuck_consumer_ends_with_a_code_of_its_own_and_the_command_that_helps(catalog):
    crashed_table(catalog, commits=20)
    shown = lake_says(catalog, "maintain", "shop.orders", code=4)
    assert "\nobstacle" in shown
    assert "consumer 'dashboard' has not moved for 2 d" in shown
    command = "maintain shop.orders --expire-consumers '2 d'"
    assert f"lake -w {catalog.location} {command}" in shown
    shown = lake_says(catalog, "maintain", "shop.orders", "--expire-consumers", "2 d")
    assert cells(shown)["snapshots"] == ["19", "10"]
    assert "deleted 1 consumer ('dashboard')" in shown


def test_a_dry_run_shows_the_same_table_and_changes_nothing(catalog):
    table = crashed_table(catalog, commits=20, consumer=None)
    shown = lake_says(catalog, "maintain", "shop.orders", "--dry-run")
    found = cells(shown)
    assert found["shop.orders"] == ["before", "expected"]
    assert found["files"] == [str(20 * BUCKETS), str(BUCKETS)]
    assert found["compact"] == [
        "planned",
        f"would compact {20 * BUCKETS} files in {BUCKETS} buckets",
    ]
    command = f"lake -w {catalog.location} maintain shop.orders"
    assert shown.endswith(f"nothing was changed; to do it: {command}\n")
    assert len(table.snapshots()) == 20
    lake_says(catalog, "maintain", "shop.orders")
    assert lake_says(catalog, "maintain", "shop.orders", "--dry-run").endswith("is healthy\n")


def test_a_dry_run_ends_with_the_command_that_does_what_it_showed(catalog):
    table = crashed_table(catalog, commits=20)
    shown = lake_says(catalog, "maintain", "shop.orders", "--dry-run", "--expire-consumers", "1 d")
    [command] = re.findall(r"to do it: lake (.*)", shown)
    assert command == f"-w {catalog.location} maintain shop.orders --expire-consumers '1 d'"
    lake_says(catalog, *shlex.split(command))
    assert table.consumers.list() == []


def test_a_dry_run_of_a_database_says_what_would_be_done_and_by_which_command(catalog):
    crashed_table(catalog, commits=20, consumer=None)
    shown = lake_says(catalog, "maintain", "shop", "--dry-run")
    assert "what would be done" in shown.splitlines()[0]
    [command] = re.findall(r"nothing was changed; to do it: lake (.*)", shown)
    assert command == f"-w {catalog.location} maintain shop"
    assert "what was done" in lake_says(catalog, *shlex.split(command)).splitlines()[0]
    assert "to do it" not in lake_says(catalog, "maintain", "shop", "--dry-run")


def test_programs_get_the_report(catalog):
    crashed_table(catalog, commits=20, consumer=None)
    [report] = json.loads(lake_says(catalog, "maintain", "shop.orders", "--json"))
    assert (report["before"]["files"], report["after"]["files"]) == (20 * BUCKETS, BUCKETS)
    assert (report["is_healthy"], report["obstacles"]) == (True, [])


@pytest.fixture
def failing(monkeypatch):
    def fail(*_, **__):
        raise lake.UnavailableError("the storage did not answer")

    monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", fail)


def test_a_step_that_fails_shows_what_the_others_did_and_exits_as_a_failure(catalog, failing):
    crashed_table(catalog, commits=20, consumer=None)
    shown = lake_says(catalog, "maintain", "shop.orders", code=1)
    assert cells(shown)["compact"][:2] == ["failed", "see the obstacles below"]
    assert shown.count("the storage did not answer") == 1
    assert cells(shown)["orphan files"] == ["30", "0"]
    assert "compact failed: the storage did not answer" in shown


def test_a_database_has_a_line_for_each_table_and_an_error_stops_no_other(catalog, monkeypatch):
    crashed_table(catalog, commits=20)
    for name in ("calm", "odd"):
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    whole = lake.Table.maintain

    def maintain(self, **how) -> MaintainReport:
        if self.location.endswith("odd"):
            raise lake.CorruptTableError("manifest-1 is missing")
        return whole(self, **how)

    monkeypatch.setattr(lake.Table, "maintain", maintain)
    shown = lake_says(catalog, "maintain", "shop", code=1)
    found = cells(shown.partition("  obstacle  ")[0])
    assert found["shop.calm"][:2] == ["healthy", "1"]
    assert found["shop.odd"] == ["CorruptTableError: manifest-1 is missing"]
    assert found["shop.orders"][:2] == ["unhealthy to healthy", f"{20 * BUCKETS} to {BUCKETS}"]
    assert "consumer 'dashboard' has not moved for 2 d" in shown
    catalog.drop_table("shop.odd")
    lake_says(catalog, "maintain", "shop", code=4)
    lake_says(catalog, "maintain", "shop", "--expire-consumers", "1 d")


def test_a_wrong_name_is_answered_with_the_nearest(catalog):
    crashed_table(catalog, commits=1)
    said = lake_refuses(catalog, "maintain", "shop.order", error=lake.NotFoundError)
    assert "did you mean 'shop.orders'?" in said
    said = lake_refuses(catalog, "maintain", "shop.orders", "--expire-consumers", "soon")
    assert "expire_consumers must be a time" in said


def test_a_terminal_sees_the_step_under_way(catalog):
    crashed_table(catalog, commits=1, consumer=None)
    _, seen = lake_on_a_terminal(catalog.location, "maintain", "shop.orders")
    assert "shop.orders: " in seen
