"""The job that checks rows reads them in Spark's tasks."""

from __future__ import annotations

import json

import pyarrow as pa

import lakeformat as lake
from spark_jobs import check


def test_rows_are_checked_in_tasks_and_progress_counts_splits(warehouse, spark, caplog):
    caplog.set_level("INFO", "spark_jobs.runtime.progress")
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    stock = catalog.create_table("shop.stock", [("sku", "STRING")], partition_by=["sku"])
    stock.write(pa.table({"sku": ["pear", "plum", "fig"]}))
    request = {
        "warehouse": warehouse,
        "table": "shop.stock",
        "min_rows": 3,
        "not_null": ["sku"],
        "engine": "spark",
    }

    result = check.run(request, spark)

    assert result["report"]["rows"] == 3
    told = [json.loads(record.message) for record in caplog.records]
    assert told[-1] == {"done": len(told), "total": len(told), "unit": "splits"}
