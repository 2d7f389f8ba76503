"""``lake`` at a terminal and in a script: rows, JSON, one-line errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake

LAKE = Path(sys.executable).with_name("lake")


def run(*arguments, **environment) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LAKE, *arguments], capture_output=True, text=True, env={"TERM": "dumb", **environment}
    )


@pytest.fixture
def warehouse(tmp_path) -> str:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    catalog.create_table("shop.empty", [("id", "BIGINT")])
    orders.write(pa.table({"id": [1, 2]}), commit=lake.CommitId("nightly", 3))
    return str(tmp_path)


def test_help_names_every_command():
    shown = run("--help")
    assert shown.returncode == 0
    for command in ("doctor", "snapshots", "tables"):
        assert command in shown.stdout


@pytest.mark.parametrize("place", ["before", "after", "environment"])
def test_the_warehouse_may_be_named_before_or_after_the_command_or_outside(warehouse, place):
    shown = {
        "before": lambda: run("--warehouse", warehouse, "tables"),
        "after": lambda: run("tables", "-w", warehouse),
        "environment": lambda: run("tables", LAKE_WAREHOUSE=warehouse),
    }[place]()
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        ["shop", "empty"],
        ["shop", "orders"],
    ]


def test_snapshots_are_rows_for_people(warehouse):
    lines = run("snapshots", "shop.orders", "-w", warehouse).stdout.splitlines()
    assert lines[0].split()[:3] == ["id", "time", "kind"]
    assert lines[1].split()[0] == "1"
    assert lines[1].split()[3:] == ["APPEND", "2", "2", "nightly", "3"]


def test_snapshots_are_json_for_programs(warehouse):
    [snapshot] = json.loads(run("snapshots", "shop.orders", "-w", warehouse, "--json").stdout)
    assert snapshot["commit_kind"] == "APPEND"
    assert snapshot["total_record_count"] == 2


def test_nothing_to_show_is_a_sentence_and_an_empty_list(warehouse):
    assert (
        "shop.empty has no snapshot yet" in run("snapshots", "shop.empty", "-w", warehouse).stdout
    )
    assert json.loads(run("snapshots", "shop.empty", "-w", warehouse, "--json").stdout) == []


@pytest.mark.parametrize(
    ("table", "code", "message"),
    [
        ("orders", 2, "InvalidRequestError: a table is named 'database.table', got 'orders'"),
        ("shop.nix", 1, "NotFoundError: table 'shop.nix' does not exist"),
    ],
)
def test_an_error_is_one_line_with_its_class_and_an_exit_code(warehouse, table, code, message):
    shown = run("snapshots", table, "-w", warehouse)
    assert shown.returncode == code
    assert shown.stderr.startswith(message)
    assert len(shown.stderr.splitlines()) == 1
