"""Jobs on a table of an Iceberg catalog: they work, or are refused by name with advice."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from spark_jobs.check import FailedChecksError
from spark_jobs.runtime.registry import JOB_NAMES, find_job
from tests.golden.iceberg_orders import IcebergOrders
from tests.unit.catalog.iceberg.small_table import make_small_table

WORKING = {
    "health": {},
    "check": {"min_rows": 2, "not_null": ["id"], "unique": ["id"], "warn_only": []},
}
"""The jobs that work, with the keys of their requests that differ from the example."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("warehouse")
    make_small_table(root / "shop/orders")
    return root


def request_of(job: str, warehouse: Path, **more: Any) -> dict[str, Any]:
    of_catalog = {"warehouse": str(warehouse), "catalog_options": {"format": "iceberg"}}
    return {**find_job(job).example, **of_catalog, **more}


def run(job: str, request: dict[str, Any]) -> dict[str, Any]:
    return import_module(f"spark_jobs.{job}").run(request)


@pytest.fixture
def orders(tmp_path) -> IcebergOrders:
    """A table of five commits."""
    return IcebergOrders(tmp_path)


@pytest.mark.parametrize("job", sorted({*JOB_NAMES} - WORKING.keys() - {"tag", "rollback"}))
def test_a_job_that_the_format_lacks_is_refused_by_name(job, warehouse):
    with pytest.raises(lake.InvalidRequestError) as refused:
        run(job, request_of(job, warehouse))
    operation = find_job(job).operation
    table = lake.open_catalog(str(warehouse), format="iceberg").table("shop.orders")
    message = str(refused.value)
    assert f"is an Iceberg table, which has no operation {operation!r}: " in message
    assert message.endswith(table.instead[operation])
    assert "\n" not in message


@pytest.mark.parametrize("job", WORKING)
def test_a_job_that_the_format_has_works(job, warehouse):
    result = run(job, request_of(job, warehouse, **WORKING[job]))
    assert (result["job"], result["table"], result["snapshot_id"]) == (job, "shop.orders", None)
    assert result["previous_snapshot_id"] == 7
    assert result["report"]["snapshot_id"] == 7


def test_the_health_job_gives_the_reasons(warehouse):
    result = run("health", request_of("health", warehouse))
    assert result["reason"] == "healthy, score 100: no problems found"
    assert result["report"]["files"]["files"] == 1


def test_the_check_job_fails_with_examples(warehouse):
    request = request_of("check", warehouse, **{**WORKING["check"], "conditions": ["id > 1"]})
    with pytest.raises(FailedChecksError, match=r"1 of 2 rows does not meet .*, such as id=1"):
        run("check", request)


def test_staged_rows_are_refused_by_name(warehouse):
    request = request_of("check", warehouse, staged=["staged-1"], min_rows=1)
    with pytest.raises(lake.UnsupportedError, match="which has no staged results: leave out"):
        run("check", request)


def test_rows_are_not_staged_in_an_iceberg_table(warehouse, tmp_path):
    (tmp_path / "rows.csv").write_text("id\n3\n")
    request = request_of("ingest", warehouse, source=str(tmp_path / "rows.csv"), stage=True)
    with pytest.raises(lake.UnsupportedError, match=r"which has no operation '(write|staged)'"):
        run("ingest", request)


def test_the_tag_job_keeps_a_snapshot(orders, tmp_path):
    second = orders.snapshots[1]
    request = request_of("tag", tmp_path, action="create", tag="v1", snapshot=second)
    first, again = run("tag", request), run("tag", {**request, "exist_ok": True})
    assert (first["report"]["action"], first["report"]["snapshot_id"]) == ("created", second)
    assert (first["skipped"], again["skipped"]) == (False, True)
    deleted = run("tag", request_of("tag", tmp_path, action="delete", exist_ok=False, tag="v1"))
    assert deleted["report"]["deleted"] == ["v1"]


def test_the_rollback_job_returns_to_a_snapshot(orders, tmp_path):
    second, last = orders.snapshots[1], orders.snapshots[-1]
    result = run(
        "rollback", request_of("rollback", tmp_path, tag=None, snapshot=second, dry_run=False)
    )
    assert (result["previous_snapshot_id"], result["snapshot_id"]) == (last, second)
    again = run(
        "rollback", request_of("rollback", tmp_path, tag=None, snapshot=second, dry_run=False)
    )
    assert (again["skipped"], again["snapshot_id"]) == (True, None)
