"""A question at a terminal is answered for what it shows, not for what changes meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app

COLUMNS = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("h", "STRING NOT NULL")]
COMMANDS = {
    "rollback": ["rollback", "shop.orders", "--snapshot", "2", "--cut-history"],
    "drop-table": ["drop-table", "shop.orders"],
    "drop-database": ["drop-database", "shop", "--cascade"],
    "partition drop": ["partition", "drop", "shop.orders", "dt=a"],
}


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, partition_by=["dt", "h"])
    for number in (1, 2, 3):
        add(catalog, number)
    return catalog


def add(catalog: lake.Catalog, number: int, hour: str = "1") -> None:
    rows = {"id": [number], "dt": ["a"], "h": [hour]}
    catalog.table("shop.orders").write(pa.table(rows))


def recreate(catalog: lake.Catalog) -> None:
    catalog.rename_table("shop.orders", "shop.old")
    catalog.create_table("shop.orders", COLUMNS)


CHANGES = {
    "rollback": lambda catalog: add(catalog, 4),
    "drop-table": recreate,
    "drop-database": lambda catalog: catalog.create_table("shop.new", COLUMNS),
    "partition drop": lambda catalog: add(catalog, 4, "2"),
}


@pytest.fixture
def answer_yes(catalog, monkeypatch):
    """A function that runs a command at a terminal and answers yes, after a change."""

    def run(command, meanwhile=lambda catalog: None):
        asked = []

        def confirm(question, err):
            asked.append(question)
            meanwhile(catalog)
            return True

        terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr("lakeformat.cli.confirm.sys", terminal)
        monkeypatch.setattr("typer.confirm", confirm)
        done = CliRunner().invoke(app, ["-w", catalog.location, *command])
        return done, asked

    return run


def state(catalog: lake.Catalog) -> list[tuple[str, list[int]]]:
    """Each table with the ids of its snapshots."""
    return [
        (name, [each.id for each in catalog.table(f"shop.{name}").snapshots()])
        for name in catalog.list_tables("shop")
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_deleted_that_was_not_shown(catalog, answer_yes, name):
    after_change = []

    def change(catalog):
        CHANGES[name](catalog)
        after_change.extend(state(catalog))

    done, asked = answer_yes(COMMANDS[name], change)

    assert len(asked) == 1
    assert isinstance(done.exception, lake.CommitConflictError), done.output
    assert str(done.exception).endswith(
        "changed while the question was shown: nothing was deleted; run the command again"
    )
    assert state(catalog) == after_change


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_change_the_answer_yes_deletes(catalog, answer_yes, name):
    before = state(catalog)
    done, asked = answer_yes(COMMANDS[name])
    assert (done.exit_code, len(asked)) == (0, 1), done.output
    if name == "drop-database":
        assert "shop" not in catalog.list_databases()
    else:
        assert state(catalog) != before


def test_a_commit_to_another_partition_does_not_refuse_a_drop(catalog, answer_yes):
    done, _ = answer_yes(
        ["partition", "drop", "shop.orders", "dt=a,h=1"], lambda catalog: add(catalog, 4, "2")
    )
    assert done.exit_code == 0, done.output
    assert catalog.table("shop.orders").scan().to_arrow()["h"].to_pylist() == ["2"]


@pytest.mark.parametrize("name", COMMANDS)
def test_with_yes_the_plan_is_not_compared(catalog, monkeypatch, name):
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("it asked"))
    done = CliRunner().invoke(app, ["-w", catalog.location, *COMMANDS[name], "--yes"])
    assert done.exit_code == 0, done.output


def test_of_an_iceberg_table_nothing_is_deleted_that_was_not_shown(
    tmp_path, monkeypatch, answer_yes
):
    warehouse = str(tmp_path / "iceberg")
    catalog = lake.open_catalog(warehouse, format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    drop = ["-w", warehouse, "--format", "iceberg", "drop-table", "shop.orders", "--purge"]
    rows = pa.table({"id": [1], "dt": ["a"], "h": ["1"]})

    done, _ = answer_yes(drop, lambda _: table.write(rows))

    assert isinstance(done.exception, lake.CommitConflictError), done.output
    assert catalog.table("shop.orders").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_branch_is_only_deleted_with_the_files_that_were_shown(catalog, answer_yes, is_changed):
    table = catalog.table("shop.orders")
    table.branches.create("dev")
    rows = pa.table({"id": [9], "dt": ["a"], "h": ["1"]})
    catalog.table("shop.orders$branch_dev").write(rows)
    delete = ["branch", "delete", "shop.orders", "dev"]

    done, asked = answer_yes(
        delete, lambda _: is_changed and catalog.table("shop.orders$branch_dev").write(rows)
    )

    assert len(asked) == 1
    left = [each.name for each in catalog.table("shop.orders").branches.list()]
    if is_changed:
        assert isinstance(done.exception, lake.CommitConflictError), done.output
        assert left == ["dev"]
    else:
        assert done.exit_code == 0, done.output
        assert left == []
