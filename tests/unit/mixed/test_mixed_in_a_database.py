"""Commands and jobs over a database take a Mixed table as one table, and skip it if it lacks the
operation.
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

LACKS = "a Mixed table has no operation '{}': "


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
    ("words", "operation"),
    [
        (("maintain", "shop", "--dry-run"), "maintain"),
        (("orphans", "shop"), "remove_orphans"),
        (("health", "shop"), "health"),
    ],
)
def test_a_command_skips_the_pair_in_one_line_and_works_on_the_rest(warehouse, words, operation):
    lines = run_command(warehouse, *words).splitlines()
    [skipped] = [line for line in lines if "skipped: " in line]
    assert "shop.t" in skipped
    assert LACKS.format(operation) in skipped
    assert any(re.search(r"shop[./]orders", line) for line in lines)
    assert not any("t_change_" in line for line in lines)
    shown = json.loads(run_command(warehouse, *words, "--json"))
    found = {re.split("[./]", each["table"])[-1]: each for each in shown}
    assert found.keys() == {"orders", "t"}
    assert found["t"]["skipped"].startswith(LACKS.format(operation))
    assert "skipped" not in found["orders"]


@pytest.mark.parametrize(
    ("job", "more", "reason"),
    [
        ("maintain", {"table": None, "expire_consumers": None}, "1 of 2 tables maintained"),
    ],
)
def test_a_job_skips_the_pair_and_its_reason_says_so(job, more, reason, warehouse):
    request: dict[str, Any] = {
        **find_job(job).example,
        "warehouse": str(warehouse),
        "catalog_options": {"format": "iceberg"},
        "database": "shop",
        **more,
    }
    result = import_module(f"spark_jobs.{job}").run(request)
    lacks = LACKS.format(find_job(job).operation)
    assert result["reason"].startswith(f"{reason}, 1 skipped: shop.t: {lacks}")
    outcomes = {each["table"]: each for each in result["report"]["tables"]}
    assert outcomes.keys() == {"shop.orders", "shop.t"}
    assert (outcomes["shop.t"]["report"], outcomes["shop.t"]["error"]) == (None, None)


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
    assert skipped.startswith("shop.t: skipped: compact of a Mixed table does not take where: ")
    lines = run_command(warehouse, "compact-database", "shop").splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["shop.orders", "shop.t"]
    assert lines[1].startswith("shop.t: full optimizing: 15 files of ")
    request = {**find_job("compact_database").example, "warehouse": str(warehouse)}
    request |= {"catalog_options": {"format": "iceberg"}, "database": "shop", "where": None}
    result = import_module("spark_jobs.compact_database").run({**request, "including": ".*"})
    assert "skipped" not in result["reason"]
