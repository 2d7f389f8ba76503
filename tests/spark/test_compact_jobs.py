"""The jobs that compact do it in Spark's tasks, with the same report."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import changelog, compact, compact_database, maintain, rescale
from tests.golden.iceberg_orders import IcebergOrders


@pytest.fixture
def stock(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.stock",
        [("sku", "STRING NOT NULL"), ("pieces", "BIGINT")],
        primary_key=["sku"],
        options={"bucket": "2", "changelog-producer": "lookup"},
    )
    for number in (1, 2):
        table.write(pa.table({"sku": ["pear", "plum", "fig"], "pieces": [number] * 3}))
    return table


def rows(table):
    return sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("job", [compact, changelog, compact_database])
def test_units_run_in_tasks_and_nothing_else_changes(warehouse, stock, spark, job):
    about = {"database": "shop"} if job is compact_database else {"table": "shop.stock"}
    before = rows(stock)

    result = job.run({"warehouse": warehouse, "engine": "spark", **about}, spark)

    assert (result["skipped"], rows(stock)) == (False, before)
    assert stock.latest_snapshot().commit_kind == "COMPACT"
    assert job.run({"warehouse": warehouse, "engine": "spark", **about}, spark)["skipped"]
    assert json.loads(json.dumps(result)) == result


def test_files_of_an_iceberg_table_are_rewritten_in_tasks(tmp_path, spark):
    orders = IcebergOrders(tmp_path)
    before = rows(lake.open_table(str(orders.root)))
    request = {
        "warehouse": str(tmp_path),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.orders",
        "engine": "spark",
    }

    result = compact.run(request, spark)

    assert (result["report"]["files_in"], result["report"]["files_out"]) == (8, 2)
    assert rows(lake.open_table(str(orders.root))) == before
    assert result["previous_snapshot_id"] == orders.snapshots[-1]


def test_buckets_are_rescaled_in_tasks(warehouse, stock, spark, caplog):
    caplog.set_level("INFO", "spark_jobs.runtime.progress")
    before = rows(stock)
    request = {"warehouse": warehouse, "table": "shop.stock", "bucket": 4, "engine": "spark"}
    stock.compact()

    result = rescale.run(request, spark)

    assert (result["report"]["partitions"][0]["outcome"], rows(stock)) == ("rescaled", before)
    told = [json.loads(record.message) for record in caplog.records]
    assert told[-1] == {"done": len(told), "total": len(told), "unit": "parts"}
    assert rescale.run(request, spark)["skipped"]


def test_a_maintenance_compacts_and_looks_for_dead_files_in_tasks(warehouse, stock, spark, caplog):
    caplog.set_level("INFO", "spark_jobs.runtime.progress")
    for number in range(6):
        stock.write(pa.table({"sku": ["pear", "plum", "fig"], "pieces": [number] * 3}))
    stock.consumers.set("reader", next_snapshot=1)
    request = {"warehouse": warehouse, "table": "shop.stock", "engine": "spark"}

    result = maintain.run(request, spark)

    assert rows(stock) == [("fig", 5), ("pear", 5), ("plum", 5)]
    assert (result["report"]["before"]["files"], result["report"]["after"]["files"]) == (16, 2)
    assert [step["error"] for step in result["report"]["steps"]] == [None] * 4
    told = [json.loads(record.message) for record in caplog.records]
    assert [each["done"] for each in told if each["unit"] == "units"][-1] == 2
    assert maintain.run(request, spark)["skipped"]
