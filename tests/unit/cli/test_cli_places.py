"""The warehouse and the table of a command."""

from __future__ import annotations

import json
import os
import re
import shutil
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.errors import InvalidRequestError, NotFoundError

runner = CliRunner()


def call(*words: str, **environment: str | None) -> str:
    """Return the output of a command; raise its error."""
    outside = {"LAKE_WAREHOUSE": None, **environment}
    shown = runner.invoke(app, [*words], env=outside, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.fixture
def warehouses(tmp_path, monkeypatch) -> Path:
    """A folder of warehouses, each with one table that bears its name."""
    for name in ("before", "after", "outside", "warehouse"):
        catalog = lake.open_catalog(str(tmp_path / name))
        catalog.create_database("shop")
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("before", "after", "outside"), [*product([False, True], repeat=3)])
def test_the_warehouse_named_nearest_to_the_command_wins(warehouses, before, after, outside):
    words = (["-w", "before"] if before else []) + ["tables"] + (["-w", "after"] if after else [])
    shown = call(*words, LAKE_WAREHOUSE="outside" if outside else None)
    said = {"after": after, "before": before, "outside": outside, "warehouse": True}
    assert shown.split()[-1] == next(name for name, is_said in said.items() if is_said)


@pytest.mark.parametrize("words", [("-w", "before", "doctor"), ("doctor", "-w", "before")])
def test_the_doctor_looks_at_the_same_warehouse(warehouses, words):
    shown = runner.invoke(app, [*words], env={"LAKE_WAREHOUSE": "outside"})
    assert f"{warehouses}/before can be written" in shown.output


@pytest.mark.parametrize(
    "words",
    [("-w", "", "tables"), ("tables", "-w", ""), ("-w", "before", "files", "a.b", "-w", " ")],
)
def test_an_empty_warehouse_is_no_warehouse(warehouses, words):
    with pytest.raises(InvalidRequestError, match="--warehouse is empty"):
        call(*words, LAKE_WAREHOUSE="outside")


def test_an_empty_variable_says_nothing(warehouses):
    assert call("tables", LAKE_WAREHOUSE="").split()[-1] == "warehouse"


def test_a_warehouse_that_is_not_there_is_said_before_its_tables_are_looked_for(tmp_path):
    with pytest.raises(NotFoundError, match=r"warehouse file://.*/nix does not exist: check"):
        call("-w", f"{tmp_path}/nix", "files", "a.b")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("shop.before$files", "lake files shop.before"),
        ("shop.before$TABLE_INDEXES", "lake indexes shop.before"),
        ("before/shop.db/before$tags", "lake tags before/shop.db/before"),
    ],
)
def test_a_system_table_has_its_own_command(warehouses, name, command):
    with pytest.raises(InvalidRequestError, match=f"has a command of its own: `{command}`"):
        call("-w", "before", "files", name)


@pytest.mark.parametrize("table", ["shop.my orders", "shop.my orders$branch_dev"])
def test_the_command_for_a_system_table_can_be_copied(warehouses, table):
    catalog = lake.open_catalog("before")
    catalog.create_table("shop.my orders", [("id", "INT")]).branches.create("dev")
    with pytest.raises(InvalidRequestError, match=re.escape(f"`lake files '{table}'`")):
        call("-w", "before", "files", f"{table}$files")


@pytest.mark.parametrize(
    "name", ["shop.before$aggregation_fields", "before/shop.db/before$audit_log"]
)
def test_a_system_table_without_a_command_is_read_in_python(warehouses, name):
    system_table = name.partition("$")[2]
    said = rf"this command does not read: in Python, table.system_table\('{system_table}'\)"
    with pytest.raises(InvalidRequestError, match=said):
        call("-w", "before", "files", name)


@pytest.mark.parametrize("name", ["shop.before$branch_", "before/shop.db/before$branch_"])
def test_a_branch_without_a_name_is_not_the_main_one(warehouses, name):
    with pytest.raises(InvalidRequestError, match="branch"):
        call("-w", "before", "files", name)


def test_a_directory_may_hold_a_dollar_sign(warehouses):
    shutil.copytree("before/shop.db/before", "$odd/a$b")
    for name in ("$odd/a$b", "./$odd/a$b"):
        assert call("schemas", name).splitlines()[1].split()[0] == "0"


@pytest.mark.parametrize("name", [".", "..", "before"])
def test_a_directory_without_a_slash_is_told_how_to_be_written(warehouses, name):
    with pytest.raises(InvalidRequestError, match=rf"or './{name}' for the directory"):
        call("files", name)


def test_only_the_last_rows_are_shown_if_that_is_wished(warehouses):
    table = lake.open_table("before/shop.db/before")
    for _ in range(3):
        table.write(pa.table({"id": [1]}))
    shown = call("snapshots", "./before/shop.db/before", "--limit", "2").splitlines()
    assert [line.split()[0] for line in shown] == ["id", "2", "3"]
    assert (
        len(json.loads(call("snapshots", "./before/shop.db/before", "--limit", "9", "--json"))) == 3
    )


def test_a_table_below_a_directory_that_is_no_utf_8_is_shown(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.rename(tmp_path / "shop.db", odd)
    assert "/%FF/orders/bucket-0/" in call("files", f"{odd}/orders", "--json")


# ---------------------------------------------------------------- places outside of tables


@pytest.fixture
def external(tmp_path) -> lake.Table:
    options = {
        "data-file.external-paths": f"file:{tmp_path}/fast",
        "data-file.external-paths.strategy": "round-robin",
    }
    allowed = {"external-roots": str(tmp_path / "fast")}
    catalog = lake.open_catalog(str(tmp_path / "wh"), options=allowed)
    catalog.create_database("shop")
    table = catalog.create_table("shop.fast", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [7]}))
    return table


@pytest.mark.parametrize("by", ["name", "directory"])
def test_an_external_root_is_allowed_before_the_command(tmp_path, external, by):
    table = "shop.fast" if by == "name" else external.location.removeprefix("file://")
    words = ("-w", str(tmp_path / "wh"))
    with pytest.raises(InvalidRequestError, match=f"lake --external-root file://{tmp_path}/fast"):
        call(*words, "scan", table)
    for root in (("--external-root", str(tmp_path / "fast")), ("--external-root", str(tmp_path))):
        assert "7" in call(*words, *root, "scan", table)
    other = ("--external-root", str(tmp_path / "other"))
    assert "7" in call(*words, *other, "--external-root", str(tmp_path / "fast"), "scan", table)


def test_an_external_root_is_given_in_one_way(tmp_path, external):
    option = ("--catalog-option", f"external-roots={tmp_path}/fast")
    words = ("-w", str(tmp_path / "wh"), *option)
    assert "7" in call(*words, "scan", "shop.fast")
    with pytest.raises(InvalidRequestError, match="set the same option"):
        call(*words, "--external-root", str(tmp_path / "fast"), "scan", "shop.fast")
