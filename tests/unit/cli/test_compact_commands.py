"""``lake compact`` and ``lake compact-database``: a line for people, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.compact_tables import compact_tables, matching_tables
from lakeformat.cli.app import app
from lakeformat.paimon.compact import compact as compaction
from lakeformat.paimon.table.upkeep import TableUpkeep
from tests.lake_command import lake_says

runner = CliRunner()


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """Two files in each partition of shop.orders, three tables in two databases."""
    catalog = lake.open_catalog(str(tmp_path))
    for name in ("shop.orders", "shop.events", "lab.orders"):
        database = name.partition(".")[0]
        catalog.create_database(database, exist_ok=True)
        columns = [("dt", "STRING NOT NULL"), ("id", "BIGINT")]
        table = catalog.create_table(
            name,
            columns,
            primary_key=["dt", "id"],
            partition_by=["dt"],
            options={"bucket": "1"},
        )
        for _ in range(2):
            table.write(pa.table({"dt": ["1", "2"], "id": [1, 1]}))
    return catalog


def invoked(catalog: lake.Catalog, *arguments: str) -> None:
    """Raise the message and the exit code of the program."""
    shown = runner.invoke(app, ["-w", catalog.location, *arguments])
    assert shown.stdout == ""
    if shown.exception is not None:
        raise shown.exception


def test_a_plan_says_what_would_be_done_and_changes_nothing(catalog):
    for word in ("--plan", "--dry-run"):
        shown = lake_says(catalog, "compact", "shop.orders", word, "--where", "dt = '1'")
        assert "1 unit\n" in shown
        assert "partition dt=1, bucket 0: 2 files become about 1" in shown
    [plan] = json.loads(lake_says(catalog, "compact", "shop.orders", "--plan", "--json"))
    assert [bucket["reason"] for bucket in plan["buckets"]] == [
        "full compaction of 2 sorted runs"
    ] * 2
    assert len(catalog.table("shop.orders").snapshots()) == 2


def test_a_table_is_compacted(catalog):
    shown = lake_says(catalog, "compact", "shop.orders", "--where", "dt = '1'")
    assert "1 bucket compacted, published as snapshot 3: 2 files of " in shown
    [report] = json.loads(lake_says(catalog, "compact", "shop.orders", "--json"))
    assert (report["snapshot_ids"], report["files_out"]) == ([4], 1)
    assert "nothing to do" in lake_says(catalog, "compact", "shop.orders")
    shown = lake_says(catalog, "compact", "shop.orders", "--strategy", "minor", "--idle", "1 h")
    assert "nothing to do: last written " in shown


def test_some_buckets_are_compacted(catalog):
    options = {"bucket": "3"}
    table = catalog.create_table(
        "shop.wide", [("id", "BIGINT")], primary_key=["id"], options=options
    )
    for _ in range(2):
        table.write(pa.table({"id": range(30)}))

    def chosen(*asked: str) -> list[int]:
        [plan] = json.loads(lake_says(catalog, "compact", "shop.wide", "--plan", "--json", *asked))
        return sorted(each["bucket"] for each in plan["buckets"] if each["chosen"])

    assert chosen() == [0, 1, 2]
    assert chosen("--buckets", "0,2") == [0, 2]
    assert chosen("--buckets", "1", "--buckets", "2") == [1, 2]
    lake_says(catalog, "compact", "shop.wide", "--buckets", "1")
    assert chosen() == [0, 2]
    for wrong, told in (("x", "is not a list of whole numbers"), ("7", "has no bucket 7")):
        with pytest.raises(lake.InvalidRequestError, match=told):
            invoked(catalog, "compact", "shop.wide", "--buckets", wrong)


def test_a_wrong_request_is_told(catalog):
    shown = runner.invoke(
        app, ["-w", catalog.location, "compact", "shop.orders", "--strategy", "x"]
    )
    assert isinstance(shown.exception, lake.InvalidRequestError)


def test_whoever_names_a_database_is_told_the_command_for_all_its_tables(catalog):
    with pytest.raises(lake.InvalidRequestError, match="`lake compact-database shop`"):
        invoked(catalog, "compact", "shop")


def test_a_single_file_is_one(catalog):
    catalog.table("lab.orders").write(pa.table({"dt": ["3"], "id": [1]}))
    shown = lake_says(catalog, "compact", "lab.orders", "--plan", "--where", "dt = '3'")
    assert "partition dt=3, bucket 0: 1 file becomes about 1, 0 B to read" in shown


def test_tables_of_a_database_are_chosen_by_regular_expressions(catalog):
    def chosen(**patterns: str) -> list[str]:
        return matching_tables(catalog, **patterns)

    assert chosen() == ["lab.orders", "shop.events", "shop.orders"]
    assert chosen(databases="sh.*") == ["shop.events", "shop.orders"]
    assert chosen(including=r".*\.orders", excluding="lab.*") == ["shop.orders"]
    assert chosen(databases="s") == []  # whole names
    with pytest.raises(lake.InvalidRequestError, match=r"including must be a regular expression"):
        chosen(including="(")
    shown = lake_says(catalog, "compact-database", "shop", "--excluding", r".*\.events")
    assert shown.startswith("shop.orders: 2 buckets compacted, published as snapshot 3")
    assert len(shown.splitlines()) == 1
    for pattern in ("nowhere", "shop.orders"):
        with pytest.raises(lake.NotFoundError, match=r"'shop\.\*' .* for databases"):
            invoked(catalog, "compact-database", pattern)


def test_a_database_that_is_dropped_meanwhile_has_no_tables(catalog, monkeypatch):
    listed = catalog.list_databases()
    catalog.drop_database("lab", cascade=True)
    monkeypatch.setattr(catalog, "list_databases", lambda: listed)
    assert matching_tables(catalog) == ["shop.events", "shop.orders"]


def test_a_database_is_planned_and_partitions_are_chosen(catalog):
    asked = ("compact-database", "shop", "--where", "dt = '1'")
    shown = lake_says(catalog, *asked, "--plan")
    assert shown.count("partition dt=1, bucket 0: 2 files become about 1") == 2
    plans = json.loads(lake_says(catalog, *asked, "--plan", "--json"))
    assert [len(each["report"]["buckets"]) for each in plans] == [1, 1]
    assert len(catalog.table("shop.orders").snapshots()) == 2
    lake_says(catalog, *asked)
    assert [
        len(catalog.table(name).plan_compaction().units) for name in ("shop.orders", "lab.orders")
    ] == [1, 2]


@pytest.mark.parametrize(
    "wrong", [("--strategy", "big"), ("--executor", "spark"), ("--idle", "soon")]
)
def test_what_is_wrong_for_every_table_is_said_before_the_first(catalog, wrong):
    with pytest.raises(lake.InvalidRequestError, match=wrong[1]):
        invoked(catalog, "compact-database", ".*", *wrong)
    with pytest.raises(lake.InvalidRequestError, match=wrong[1]):
        invoked(catalog, "compact-database", ".*", "--plan", *wrong)
    with pytest.raises(lake.InvalidRequestError, match=wrong[1]):
        invoked(catalog, "compact", "shop.orders", "--plan", *wrong)


def test_a_table_that_fails_stops_no_other(catalog):
    catalog.create_table(
        "shop.a", [("id", "BIGINT")], options={"bucket": "-1", "row-tracking.enabled": "true"}
    )
    outcomes = {each.table: each for each in compact_tables(catalog, matching_tables(catalog))}
    assert isinstance(outcomes["shop.a"].error, lake.UnsupportedError)
    assert all(each.report for name, each in outcomes.items() if name != "shop.a")
    shown = runner.invoke(app, ["-w", catalog.location, "compact-database", ".*", "--json"])
    assert [each["error"] is None for each in json.loads(shown.stdout)] == [True, False, True, True]
    assert "1 of 4 tables failed" in str(shown.exception)


def test_a_defect_met_at_one_table_is_said_and_stops_no_other(catalog, monkeypatch):
    found = TableUpkeep.compact

    def compact(table: lake.Table, **how: object) -> object:
        if table.location.endswith("events"):
            raise OverflowError("too large")
        return found(table, **how)

    monkeypatch.setattr(TableUpkeep, "compact", compact)
    outcomes = {each.table: each for each in compact_tables(catalog, matching_tables(catalog))}
    assert str(outcomes["shop.events"].error) == (
        "a defect of this library: OverflowError: too large. "
        "Report it with the traceback in the log"
    )
    assert outcomes["shop.orders"].report is not None


@pytest.fixture
def damaged(catalog) -> lake.Catalog:
    """Delete a data file of one partition of shop.orders."""
    orders = Path(catalog.location.removeprefix("file://"), "shop.db/orders")
    next((orders / "dt=1/bucket-0").iterdir()).unlink()
    return catalog


@pytest.mark.parametrize("command", ["compact", "changelog"])
def test_what_was_compacted_is_reported_beside_what_failed(damaged, command):
    damaged.alter_table("shop.orders", lake.set_option("changelog-producer", "lookup"))
    shown = runner.invoke(app, ["-w", damaged.location, command, "shop.orders", "--json"])
    [report] = json.loads(shown.stdout)
    assert {b["partition"]: b["outcome"] for b in report["buckets"]} == {
        "dt=1": "failed",
        "dt=2": "compacted",
    }
    assert report["snapshot_ids"] == [3]
    assert isinstance(shown.exception, lake.CorruptTableError)
    assert shown.exit_code == 1


def test_people_read_what_was_compacted_beside_what_failed(damaged):
    shown = runner.invoke(app, ["-w", damaged.location, "compact", "shop.orders"])
    assert shown.stdout.startswith(
        "1 bucket compacted, 1 failed, published as snapshot 3: 2 files of "
    )
    assert "is missing" in str(shown.exception)


def test_of_many_tables_the_report_stands_beside_the_error(damaged):
    shown = runner.invoke(app, ["-w", damaged.location, "compact-database", "shop", "--json"])
    orders = {each["table"]: each for each in json.loads(shown.stdout)}["shop.orders"]
    assert orders["error"].startswith("CorruptTableError: ")
    assert orders["report"]["snapshot_ids"] == [3]


@pytest.mark.parametrize("words", [("compact", "shop.events"), ("compact-database", "shop")])
def test_a_compaction_that_is_left_unfinished_is_no_success(catalog, monkeypatch, words):
    monkeypatch.setattr(compaction, "_ROUNDS", 1)
    monkeypatch.setattr(compaction._BucketCompaction, "_places_to_plan", lambda *_: {(b"", 0)})
    shown = runner.invoke(app, ["-w", catalog.location, *words])
    assert shown.exit_code == 1
    assert "buckets may still be due after 1 rounds: compact again" in shown.stdout
    shown = runner.invoke(app, ["-w", catalog.location, *words, "--json"])
    assert json.loads(shown.stdout)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shop.ordres", r"lists the tables there; did you mean 'shop.orders'\?$"),
        ("shop.nix", r"does not exist in file:.* lists the tables there$"),
        (
            "sohp.orders",
            r"'sohp' does not exist .*; did you mean 'shop'\? `lake tables` lists all tables$",
        ),
        ("shop.orders$branch_x", r"has no branch 'x'; main is the only one$"),
    ],
)
def test_a_table_that_is_not_there_names_the_one_that_may_be_meant(catalog, name, said):
    with pytest.raises(lake.NotFoundError, match=said):
        invoked(catalog, "compact", name)
