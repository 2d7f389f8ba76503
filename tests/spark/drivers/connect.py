"""A driver without a JVM of its own: everything through Spark Connect.

connect.py WAREHOUSE CHECKPOINT
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakeformat as lake
import spark_jobs
from spark_jobs import ingest


def main() -> None:
    warehouse, checkpoint = sys.argv[1:]
    builder = SparkSession.builder.remote("local[2]").appName("connect")
    started = builder.config("spark.connect.progress.reportInterval", "50ms").getOrCreate()
    spark = spark_jobs.register(started, warehouse)
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS note")
    written = spark_jobs.write_table(rows, "shop.orders")
    newer = rows.where("id < 10").selectExpr("id", "'b' AS note")
    spark_jobs.by_bucket(newer, "shop.orders").write.format("lake").mode("append").save(
        "shop.orders"
    )
    table = lake.open_catalog(warehouse).table("shop.orders")
    merged = spark_jobs.count_table(spark, table)
    compacted = table.compact(executor=spark_jobs.SparkExecutor(spark))
    rescaled = table.rescale(bucket=4, executor=spark_jobs.SparkExecutor(spark))
    read = spark_jobs.read_table(spark, table, where="note = 'b'")
    source = spark.read.format("lake").load("shop.orders")
    told = {
        "kind": type(spark).__module__,
        "written": written.rows,
        "merged": merged,
        "files_out": compacted.files_out,
        "rescaled": [each.rows_out for each in rescaled.partitions],
        "read": read.count(),
        "source": source.count(),
        "filtered before": source.where("id < 3").count() + source.count(),
        "views": len(spark_jobs.create_views(spark, "shop.orders")) > 2,
        "viewed": spark.sql("SELECT id FROM orders WHERE note = 'b'").count(),
    }
    rows = spark.readStream.format("lake").option("rowkind", "false").load("shop.orders")
    stream = spark_jobs.by_bucket(rows, "shop.copy").writeStream.format("lake")
    stream = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    stream.start("shop.copy").awaitTermination()
    told["copied"] = spark_jobs.count_table(spark, "shop.copy")
    told["heard"] = heard(spark, warehouse)
    told["stopped"] = {
        how.__name__: stopped(spark, Path(checkpoint).parent, how)
        for how in (by_event, by_ctrl_c, by_interrupt_all)
    }
    print("TOLD " + json.dumps(told), flush=True)
    spark.stop()


def by_event(spark, stop):
    stop.set()


def by_ctrl_c(spark, stop):
    os.kill(os.getpid(), signal.SIGINT)


def by_interrupt_all(spark, stop):
    spark.interruptAll()


def stopped(spark, folder, how):
    """Return the outcome of long work in tasks, and the seconds until it ended."""
    place, stop, asked = folder / how.__name__, threading.Event(), []
    place.mkdir()

    def ask():
        while len([*place.iterdir()]) < 2:
            time.sleep(0.05)
        asked.append(time.monotonic())
        how(spark, stop)

    threading.Thread(target=ask).start()
    end = "nothing came of it"
    try:
        for _ in spark_jobs.SparkExecutor(spark, at_once=2).outcomes(
            Working(str(place)), [Unit(0), Unit(1), Unit(2)], stop
        ):
            end = "a unit is done"
    except (KeyboardInterrupt, PySparkException) as error:
        end = type(error).__name__
    ended = time.monotonic()
    before: dict[str, int] = {}
    while beats(place) != before and time.monotonic() < ended + 60:
        before = beats(place)
        time.sleep(1)
    return {
        "end": end,
        "driver": ended - asked[0],
        "tasks": time.monotonic() - asked[0],
        "units": len(before),
    }


def beats(place):
    return {path.name: path.stat().st_size for path in place.iterdir()}


@dataclass(frozen=True)
class Unit:
    """Large enough for a task of its own."""

    number: int
    bytes: int = 1 << 28


@dataclass(frozen=True)
class Working:
    place: str

    def __call__(self, unit):
        for _ in range(1200):
            with Path(self.place, str(unit.number)).open("a") as file:
                file.write(".")
            time.sleep(0.1)


def heard(spark, warehouse):
    """Return the progress of an ingestion's tasks."""
    place = Path(warehouse, "incoming")
    place.mkdir()
    for number in range(12):
        rows = "".join(f"{n}\n" for n in range(20_000))
        (place / f"{number}.csv").write_text(f"id\n{rows}")
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(json.loads(record.getMessage()))
    log = logging.getLogger("spark_jobs.runtime.progress")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    request = {"warehouse": warehouse, "table": "shop.numbers", "source": f"{place}/*.csv"}
    ingest.run({**request, "create": True, "engine": "spark"}, spark)
    log.removeHandler(handler)
    spark.range(1000).count()  # no handler logs this
    return lines


if __name__ == "__main__":
    main()
