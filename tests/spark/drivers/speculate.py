"""A driver that writes with speculation on; the first attempt of a task ends behind its double.

speculate.py MASTER WAREHOUSE MARK
"""

import json
import sys
import time
from functools import partial
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

import lakeformat as lake
import spark_jobs
from spark_jobs.publish import publish
from spark_jobs.spark_write import write_in_tasks

_PATIENCE_SECONDS = 300


def main() -> None:
    master, warehouse, mark = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName("speculate")
    builder = builder.config("spark.speculation", "true").config(
        "spark.speculation.quantile", "0.5"
    )
    builder = builder.config("spark.speculation.minTaskRuntime", "100ms")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
    spark = spark_jobs.register(builder.getOrCreate(), warehouse)
    table = lake.open_catalog(warehouse).table("shop.events")
    rows = spark.range(0, 1000, 1, 4).selectExpr("id", "'a' AS note")
    report = publish(table, write_in_tasks(rows, table, partial(slowly, mark)))
    print("TOLD " + json.dumps({"rows": report.rows, "files": report.files}), flush=True)
    spark.stop()


def slowly(mark, table, batches):
    """All rows; of one task the first attempt waits until the second one has written its own."""
    context = TaskContext.get()
    is_watched = context.partitionId() == 0
    is_double = is_watched and context.attemptNumber() > 0
    yield from batches
    if is_double:
        Path(f"{mark}.double").touch()
    elif is_watched:
        Path(mark).touch()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not Path(f"{mark}.double").exists() and time.monotonic() < deadline:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
