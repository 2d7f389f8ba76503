"""``lake partition``, ``analyze``, ``rewrite-…``, ``migrate`` and ``clone`` at a terminal."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from tests.lake_command import lake_refuses, lake_says

runner = CliRunner()
refuses = partial(lake_refuses, error=lake.LakeError)


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(str(tmp_path / "here"))
    catalog.create_database("shop")
    columns = [("dt", "STRING"), ("h", "INT"), ("id", "BIGINT")]
    table = catalog.create_table("shop.orders", columns, partition_by=["dt", "h"])
    for day in ("2020-01-01", "2020-01-02", "2999-01-01"):
        table.write(pa.table({"dt": [day], "h": pa.array([1], pa.int32()), "id": [1]}))
    return catalog


def json_of(catalog: lake.Catalog, *arguments: str) -> dict:
    [found] = json.loads(lake_says(catalog, *arguments, "--json"))
    return found


def newest(catalog: lake.Catalog) -> int:
    return catalog.table("shop.orders").latest_snapshot().id


def test_expired_partitions_are_shown_with_reasons_and_then_deleted(catalog):
    how = ("partition", "expire", "shop.orders", "--older-than", "30 d")
    shown = lake_says(catalog, *how, "--dry-run")
    assert "dt=2020-01-01/h=1" in shown
    assert "its time is 2020-01-01 00:00:00, before" in shown
    assert newest(catalog) == 3
    found = json_of(catalog, *how, "--max", "1")
    assert [each["partition"] for each in found["expired"]] == ["dt=2020-01-01/h=1"]
    assert (found["left"], found["kept"], newest(catalog)) == (1, 1, 4)


def test_a_drop_shows_what_it_drops(catalog):
    how = ("partition", "drop", "shop.orders", "dt=2020-01-01,h=1")
    assert "would be dropped" in lake_says(catalog, *how, "--dry-run")
    assert newest(catalog) == 3
    said = refuses(catalog, *how)
    assert "deleting 1 partition of shop.orders can only be undone by `lake rollback`" in said
    assert "add --yes" in said
    assert newest(catalog) == 3
    assert "published as snapshot 4" in lake_says(catalog, *how, "--yes")
    assert json_of(catalog, "partition", "drop", "shop.orders", "dt=2020-01-02", "-y")["commit"]


def test_a_drop_of_a_partition_that_is_not_there_is_an_error_unless_that_is_fine(catalog):
    how = ("partition", "drop", "shop.orders", "dt=2020-01-01", "dt=1999-01-01,h=1", "--yes")
    for more in ((), ("--dry-run",)):
        said = refuses(catalog, *how, *more)
        assert "shop.orders has no partition dt=1999-01-01,h=1" in said
        assert "--missing-ok" in said
    assert newest(catalog) == 3
    assert "published as snapshot 4" in lake_says(catalog, *how, "--missing-ok")
    assert "nothing was dropped" in lake_says(catalog, *how, "--missing-ok")


@pytest.mark.parametrize("command", ["drop", "done"])
def test_two_values_of_a_column_in_one_partition_are_refused(catalog, command):
    said = refuses(catalog, "partition", command, "shop.orders", "dt=2020-01-01, dt=2020-01-02")
    assert "column 'dt' has two values: name it once, and write each partition as its own" in said


def test_a_partition_is_marked_where_it_lies(catalog):
    how = ("partition", "done", "shop.orders", "dt=2020-01-01,h=1")
    assert "would be marked" in lake_says(catalog, *how, "--dry-run")
    assert "/dt=2020-01-01/h=1/_SUCCESS" in lake_says(catalog, *how)
    assert "already marked" in lake_says(catalog, *how)
    assert json_of(catalog, *how, "--action", "done-partition")["actions"] == ["done-partition"]
    assert "'h' is missing" in refuses(catalog, *how[:3], "dt=2020-01-01")
    assert "COLUMN=VALUE" in refuses(catalog, *how[:3], "2020-01-01")
    assert "mark-event" in refuses(catalog, *how, "--action", "mark-event")


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--dry-run", "--json")])
def test_a_partition_is_not_marked_on_a_branch_nor_in_a_dry_run(catalog, more):
    catalog.table("shop.orders").branches.create("trial", snapshot=3)
    how = ("partition", "done", "shop.orders$branch_trial", "dt=2020-01-01,h=1")
    assert "only be marked as done from main" in refuses(catalog, *how, *more)


def test_statistics_are_printed_by_column(catalog):
    shown = lake_says(catalog, "analyze", "shop.orders", "--all-columns")
    assert "2020-01-01" not in shown  # texts have no bounds
    assert "3 rows and computed statistics of 3 columns in snapshot 3" in shown
    found = json_of(catalog, "analyze", "shop.orders", "-c", "id", "--dry-run")
    assert list(found["columns"]) == ["id"]
    assert json.loads(lake_says(catalog, "statistics", "shop.orders", "--json"))
    assert "exclude each other: keep one of them" in refuses(
        catalog, "analyze", "shop.orders", "-c", "id", "--all-columns"
    )


def test_manifests_and_indexes_are_made_anew_after_a_look(catalog):
    how = ("rewrite-manifests", "shop.orders")
    assert "would merge manifests" in lake_says(catalog, *how, "--dry-run")
    assert "3 manifests became 1" in lake_says(catalog, *how)
    assert json_of(catalog, *how)["snapshot_id"] is None
    catalog.alter_table("shop.orders", lake.set_option("file-index.bitmap.columns", "id"))
    how = ("rewrite-file-index", "shop.orders", "--where", "dt < '2021-01-01'")
    assert "the indexes of 2 of 2 files would change" in lake_says(catalog, *how, "--dry-run")
    assert "bitmap of id is missing" in lake_says(catalog, *how)
    assert json_of(catalog, *how)["changed"] == []


def test_a_table_is_cloned_into_another_warehouse_and_database(catalog, tmp_path):
    there = lake.open_catalog(str(tmp_path / "there"))
    there.create_database("shop")
    how = ("clone", "shop.orders", "shop.copy", "--to", there.location)
    assert "would be copied" in lake_says(catalog, *how, "--dry-run")
    assert there.list_tables("shop") == []
    assert "snapshot 3 to" in lake_says(catalog, *how)
    assert there.table("shop.copy").scan().count() == 3
    found = json_of(catalog, "clone", "shop.orders", "shop.all", "--full")
    assert found["snapshot_ids"] == [1, 2, 3]
    assert "choose another name" in refuses(catalog, *how)
    shown = lake_says(catalog, "clone-database", "shop", "--to", there.location, "--as", "backup")
    assert shown.count("files complete") == 2
    failed = refuses(catalog, "clone-database", "shop", "--to", there.location, "--as", "backup")
    assert (
        "2 tables were not cloned; the first is shop.all. To continue: 2 names are taken" in failed
    )


def test_the_tables_that_a_clone_of_a_database_left_are_cloned_by_the_printed_option(catalog):
    catalog.create_table("shop.broken", [("id", "BIGINT")])
    [schema] = Path(catalog.location.removeprefix("file://")).glob("shop.db/broken/schema/schema-0")
    content = schema.read_text()
    schema.write_text("{")
    how = ("clone-database", "shop", "--as", "backup")
    failed = refuses(catalog, *how)
    assert (
        "1 table was not cloned; the first is shop.broken. To continue: correct the cause" in failed
    )
    planned = refuses(catalog, *how, "--dry-run")
    assert "correct the cause, then run the command again" in planned
    assert "--including" not in planned, "a dry run has cloned no table"
    schema.write_text(content)
    [again] = re.findall(r"--including \S+(?=,)", failed)
    assert "files complete" in lake_says(catalog, *how, *shlex.split(again))
    assert catalog.list_tables("backup") == ["broken", "orders"]


@pytest.mark.parametrize(
    "words",
    [
        ("clone", "shop.orders", "backup.orders"),
        ("clone-database", "shop", "--as", "backup", "--dry-run"),
    ],
)
def test_a_missing_database_is_to_be_made_where_the_copy_goes(catalog, tmp_path, words):
    there = str(tmp_path / "other place")
    how = (*words, "--to", there)
    shown = runner.invoke(app, ["-w", catalog.location, *how])
    assert isinstance(shown.exception, lake.NotFoundError)
    [mends] = re.findall("`lake (.*)`", str(shown.exception))
    assert runner.invoke(app, shlex.split(mends)).exit_code == 0
    assert "snapshot 3 to" in lake_says(catalog, *how)


def test_a_directory_becomes_a_table(catalog, tmp_path: Path):
    directory = tmp_path / "plain" / "dt=2024-01-31"
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), directory / "a.parquet")
    how = ("migrate", str(tmp_path / "plain"), "shop.new", "--partition", "dt=DATE")
    assert "no external root allows" in refuses(catalog, *how)
    assert "copied" in lake_says(catalog, *how, "--copy", "--dry-run")
    how = ("--external-root", str(tmp_path / "plain"), *how)
    shown = lake_says(catalog, *how, "--dry-run")
    assert "registered" in shown
    assert "shop.new (id BIGINT, dt DATE)" in shown
    assert catalog.list_tables("shop") == ["orders"]
    assert json_of(catalog, *how, "--option", "file.format=orc")["snapshot_id"] == 1
    assert "2024-01-31" in lake_says(catalog, *how[:2], "scan", "shop.new")
    assert "has no '='" in refuses(catalog, *how[:6], "dt")
    twice = refuses(catalog, *how[2:], "--partition", "dt=STRING", "--copy", "--dry-run")
    assert twice == "column 'dt' has two values: name the column once"
    options = ("--option", "bucket=1", "--option", "bucket=2")
    assert "option 'bucket' has two values" in refuses(catalog, *how, *options)


@pytest.mark.parametrize(
    "command",
    [
        ("partition", "expire"),
        ("partition", "drop"),
        ("partition", "done"),
        ("analyze",),
        ("rewrite-manifests",),
        ("rewrite-file-index",),
        ("migrate",),
        ("clone",),
        ("clone-database",),
        ("compact",),
        ("compact-database",),
        ("changelog",),
        ("health",),
        ("scan",),
        ("changes",),
        ("write",),
        ("create-table",),
    ],
)
def test_help_shows_an_example(command):
    shown = runner.invoke(app, [*command, "--help"])
    assert f"lake {' '.join(command)} " in " ".join(shown.output.split())
