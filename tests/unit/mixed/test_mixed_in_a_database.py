"""Commands and jobs over a database take a Mixed table as one table, and skip it if it lacks an
argument.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.tables.table_by_table import table_by_table
from spark_jobs.runtime.registry import find_job
from tests.golden.iceberg_orders import IcebergOrders
from tests.golden.mixed import mixed_copy


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A database with an Iceberg table, and with a Mixed table of two stores."""
    IcebergOrders(tmp_path)
    mixed_copy("keyed_int", tmp_path / "shop")
    return tmp_path


def run_command(warehouse: Path, *words: str) -> str:
    options = ["--format", "iceberg", "--warehouse", str(warehouse)]
    shown = CliRunner().invoke(app, [*options, *words], env={"COLUMNS": "400"})
    assert shown.exit_code in (0, 4), (shown.output, shown.exception)  # 4: an obstacle remains
    return shown.output


@pytest.mark.parametrize(
    "words",
    [
        ("maintain", "shop", "--dry-run"),
        ("orphans", "shop"),
        ("health", "shop"),
        ("expire", "shop"),
    ],
)
def test_a_command_takes_the_pair_in_one_line(warehouse, words):
    lines = run_command(warehouse, *words).splitlines()
    assert not any("skipped" in line or "t_change_" in line for line in lines)
    assert any("shop.t" in line for line in lines)
    shown = json.loads(run_command(warehouse, *words, "--json"))
    found = {re.split("[./]", each["table"])[-1]: each for each in shown}
    assert found.keys() == {"orders", "t"}


def test_a_job_takes_the_pair_as_one_table(warehouse):
    request: dict[str, Any] = {
        **find_job("maintain").example,
        "warehouse": str(warehouse),
        "catalog_options": {"format": "iceberg"},
        "database": "shop",
        "table": None,
        "expire_consumers": None,
    }
    result = import_module("spark_jobs.maintain").run(request)
    assert result["reason"].startswith("2 of 2 tables maintained")
    outcomes = {each["table"]: each for each in result["report"]["tables"]}
    assert outcomes.keys() == {"shop.orders", "shop.t"}
    assert all(each["error"] is None for each in outcomes.values())


def test_half_a_pair_is_an_error_and_not_skipped(warehouse):
    base = warehouse / "shop/t_change_"
    base.rename(warehouse / "elsewhere")
    catalog = lake.open_catalog(str(warehouse), format="iceberg")
    [found] = table_by_table(["shop.t"], lambda name: catalog.table(name).maintain())
    assert found.skipped is None
    assert "its change store" in str(found.error)


def test_a_database_is_compacted_with_its_mixed_tables(warehouse):
    planned = run_command(warehouse, "compact-database", "shop", "--plan")
    assert "full optimizing of 1 of 1 partitions in 4 tasks" in planned
    where = ("compact-database", "shop", "--where", "id > 0")
    [skipped] = [line for line in run_command(warehouse, *where).splitlines() if "skipped" in line]
    assert skipped.startswith("shop.t: skipped: compact of a Mixed table does not take --where: ")
    lines = run_command(warehouse, "compact-database", "shop").splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["shop.orders", "shop.t"]
    assert lines[1].startswith("shop.t: full optimizing: 15 files of ")
    request = {**find_job("compact_database").example, "warehouse": str(warehouse)}
    request |= {"catalog_options": {"format": "iceberg"}, "database": "shop", "where": None}
    result = import_module("spark_jobs.compact_database").run({**request, "including": ".*"})
    assert "skipped" not in result["reason"]
