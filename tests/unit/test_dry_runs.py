"""Every command that changes a table has a dry run, JSON output and an example."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.paimon.deletion import announce

runner = CliRunner()

READS = """
    branch list, branches, buckets, changelog, changes, check, consumer list, consumers, doctor,
    files, health, indexes, manifests, options, package, partitions, plan, scan, schemas,
    snapshots, statistics, tables, tag list, tags
"""
MAKES = """
    create-database, create-table, publish, rename-table, repair, set-option, unset-option, write
"""
"""Commands without a dry run: they delete nothing, or print it. ``publish`` deletes only metadata
that it has written itself, of snapshots that no longer exist."""

WOULD = {
    "tag create shop.orders v2": "tag 'v2' would be snapshot 3",
    "tag create shop.orders v1 --exist-ok": "tag 'v1' of snapshot 1 already existed",
    "tag replace shop.orders v1 --snapshot 2": "tag 'v1' would move from snapshot 1 to 2",
    "tag rename shop.orders v1 v2": "tag 'v1' would be renamed to 'v2'",
    "branch create shop.orders new --tag v1": "branch 'new' would begin at snapshot 1",
    "branch create shop.orders new": "branch 'new' would begin with the columns of main and",
    "branch rename shop.orders dev new": "branch 'dev' would be renamed to 'new'",
    "consumer set shop.orders job --next 3": "would keep snapshots from 3 on for consumer 'job'",
    "consumer reset shop.orders job --next 1": "would keep snapshots from 1 on for consumer 'job'",
    "consumer reset shop.orders job": "would delete consumer 'job'",
}
REFUSED = {
    "tag create shop.orders v1": "choose another name",
    "tag create shop.orders v2 --snapshot 9": "has expired; snapshots 1 to 3 exist",
    "tag replace shop.orders v2": "has no tag 'v2'",
    "tag rename shop.orders v1 v1": "choose another name",
    "branch create shop.orders dev": "choose another name",
    "branch rename shop.orders dev dev": "choose another name",
    "branch rename shop.orders no new": "has no branch 'no'",
    "consumer set shop.orders job --next 9": "the next commit makes snapshot 4",
    "consumer reset shop.orders no": "has no consumer 'no'",
}


def commands(found: typer.main.TyperCommand, *names: str) -> dict[str, typer.main.TyperCommand]:
    below = getattr(found, "commands", None)
    if below is None:
        return {" ".join(names): found}
    return {
        name: command
        for each, child in below.items()
        for name, command in commands(child, *names, each).items()
    }


COMMANDS = commands(typer.main.get_command(app))
CHANGES = sorted({*COMMANDS} - {each.strip() for each in READS.split(",")})


@pytest.mark.parametrize("name", CHANGES)
def test_a_command_that_changes_something_has_a_dry_run_json_and_an_example(name):
    command = COMMANDS[name]
    spelled = {text for option in command.params for text in (*option.opts, *option.secondary_opts)}
    assert "--json" in spelled
    assert ("--dry-run" in spelled) is (name not in {each.strip() for each in MAKES.split(",")})
    assert f"lake {name} " in command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name):
    assert COMMANDS[name].help


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """Three snapshots of shop.orders, of which one has a tag, one a branch and one a reader."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in (1, 2, 3):
        table.write(pa.table({"id": [number]}))
    table.tags.create("v1", snapshot=1)
    table.branches.create("dev", snapshot=3)
    table.consumers.set("job", next_snapshot=2)
    return catalog


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", WOULD)
def test_a_dry_run_says_what_would_be_done_and_changes_nothing(catalog, tmp_path, command):
    before, words = files(tmp_path), ["-w", catalog.location, *command.split(), "--dry-run"]
    shown = runner.invoke(app, words)
    assert (shown.exit_code, shown.output.startswith(WOULD[command])) == (0, True), shown.output
    [report] = json.loads(runner.invoke(app, [*words, "--json"]).output)
    assert report["dry_run"] is True
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", REFUSED)
def test_a_dry_run_refuses_what_would_be_refused(catalog, command):
    shown = runner.invoke(app, ["-w", catalog.location, *command.split(), "--dry-run"])
    assert isinstance(shown.exception, lake.LakeError)
    assert REFUSED[command] in str(shown.exception)


def test_a_dry_run_does_not_promise_a_snapshot_that_is_expiring(catalog):
    table = catalog.table("shop.orders")
    announce(table._handle, table.snapshots()[:1], 2)
    for make in (
        lambda: table.tags.create("new", snapshot=1, dry_run=True),
        lambda: table.branches.create("new", snapshot=1, dry_run=True),
        lambda: table.consumers.set("new", next_snapshot=1, dry_run=True),
    ):
        with pytest.raises(lake.CommitConflictError, match=r"snapshot 1 of .* is expiring"):
            make()


def test_a_program_reads_what_became_of_databases_and_tables(tmp_path):
    def said(*words: str) -> object:
        shown = runner.invoke(app, ["-w", str(tmp_path), *words, "--json"])
        assert shown.exit_code == 0, shown.output
        return json.loads(shown.output)

    assert said("create-database", "shop") == [{"database": "shop"}]
    [made] = said("create-table", "shop.orders", "--column", "id BIGINT")
    assert (made["table"], made["schema_id"]) == ("shop.orders", 0)
    assert made["location"].endswith("/shop.db/orders")
    renamed = said("rename-table", "shop.orders", "shop.old")
    assert renamed == [{"from": "shop.orders", "to": "shop.old"}]
    [planned] = said("drop-table", "shop.old", "--dry-run")
    assert (planned["table"], planned["dry_run"]) == ("shop.old", True)
    [dropped] = said("drop-database", "shop", "--cascade", "--yes")
    assert {**dropped, "dry_run": True} == planned
    assert said("tables") == []
