"""A driver that writes and reads with speculation on, and cancels what never ends.

speculate.py MASTER WAREHOUSE FOLDER

Of one task of each write the first attempt ends behind its double.
"""

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakeformat as lake
import spark_jobs
from spark_jobs.frames.publish import publish
from spark_jobs.frames.spark_write import write_in_tasks
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.batch_reader import LakeReader
from spark_jobs.source.lake_source import LakeDataSource
from spark_jobs.source.writers import LakeWriter

_PATIENCE_SECONDS = 120


def main() -> None:
    master, warehouse, folder = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName("speculate")
    builder = builder.config("spark.speculation", "true").config(
        "spark.speculation.quantile", "0.5"
    )
    builder = builder.config("spark.speculation.minTaskRuntime", "100ms")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
    spark = spark_jobs.register(builder.getOrCreate(), warehouse)
    told = {"by_tasks": write_by_tasks(spark, warehouse, folder)}
    copy_by_format(spark, warehouse, folder)
    told["cancelled"] = [
        cancelled(spark, warehouse, folder, act) for act in (save_for_ever, read_for_ever)
    ]
    print("TOLD " + json.dumps(told), flush=True)
    spark.stop()


def write_by_tasks(spark, warehouse, folder):
    table = lake.open_catalog(warehouse).table("shop.events")
    rows = spark.range(0, 1000, 1, 4).selectExpr("id", "'a' AS note")
    report = publish(table, write_in_tasks(rows, table, partial(slowly, folder)))
    return {"rows": report.rows, "files": report.files}


def slowly(folder, table, batches):
    """All rows; the first attempt waits until the second one is about to write its own."""
    yield from batches
    await_double(folder, "tasks")


def copy_by_format(spark, warehouse, folder):
    hold(spark, warehouse, Holding(folder, double="format"))
    rows = spark.read.format("lake").load("shop.events")
    rows.write.format("lake").mode("append").save("shop.copy")


def save_for_ever(spark, folder):
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'never' AS note")
    rows.write.format("lake").mode("append").save("shop.copy")


def read_for_ever(spark, folder):
    spark.read.format("lake").load("shop.copy").collect()


def cancelled(spark, warehouse, folder, act):
    """Return the outcome of an action with hanging tasks, and the seconds since its cancel."""
    mark = Path(folder, f"{act.__name__}.stays")
    hold(spark, warehouse, Holding(folder, stays=str(mark)))
    context = spark.sparkContext
    cancelled_at = []

    def cancel():
        wait_for(mark)
        cancelled_at.append(time.monotonic())
        context.cancelJobGroup(act.__name__)

    thread = threading.Thread(target=cancel)
    thread.start()
    context.setJobGroup(act.__name__, "to be cancelled")
    error = ""
    try:
        act(spark, folder)
    except (Py4JJavaError, PySparkException) as reason:
        error = str(reason)[:2000]
    thread.join()
    return {
        "seconds": time.monotonic() - cancelled_at[0],
        "error": error,
        "jobs": [*context.statusTracker().getActiveJobsIds()],
    }


class Holding:
    """Block a task once its rows are written, or the first of them read."""

    def __init__(self, folder, *, double=None, stays=None):
        self.folder = folder
        self.double = double
        self.stays = stays

    def __call__(self):
        if self.double is not None:
            await_double(self.folder, self.double)
        else:
            Path(self.stays).touch()
            time.sleep(_PATIENCE_SECONDS)


def hold(spark, warehouse, holding):
    """Let ``format("lake")`` hold its tasks up."""

    class HeldWriter(LakeWriter):
        def write(self, iterator):
            answer = super().write(iterator)
            holding()
            return answer

    class HeldReader(LakeReader):
        def read(self, partition):
            batches = super().read(partition)
            yield next(batches)
            if holding.stays is not None:
                holding()
            yield from batches

    class HeldSource(LakeDataSource):
        def reader(self, schema):
            made = super().reader(schema)
            return HeldReader(made._asked, made._at_once)

        def writer(self, schema, overwrite):
            made = super().writer(schema, overwrite)
            return HeldWriter(made._table, made._how)

    HeldSource.place = Warehouse(warehouse)
    HeldSource.at_once = 2
    spark.dataSource.register(HeldSource)


def await_double(folder, name):
    """In the first attempt of one task, until its second attempt comes here as well."""
    context = TaskContext.get()
    if context.partitionId() != 0:
        return
    double = Path(folder, f"{name}.double")
    if context.attemptNumber() > 0:
        double.touch()
    else:
        wait_for(double)


def wait_for(mark):
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.1)


if __name__ == "__main__":
    main()
