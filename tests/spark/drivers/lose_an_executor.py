"""A driver that writes, compacts and reads; its first attempts to write wait to be killed.

lose_an_executor.py MASTER WAREHOUSE MARK
"""

import json
import sys
import time
from pathlib import Path

import lakeformat as lake
import spark_jobs
from spark_jobs.frames.publish import publish
from spark_jobs.frames.routing import routed, routing_of
from spark_jobs.frames.spark_write import write_in_tasks


def main() -> None:
    master, warehouse, mark = sys.argv[1:]
    spark = spark_jobs.session("lose an executor", master=master, warehouse=warehouse)
    table = lake.open_catalog(warehouse).table("shop.orders")
    rows = spark.range(0, 1000, 1, 4).selectExpr("id", "'a' AS note")

    def wait_once(batches):
        for batch in batches:
            try:
                Path(mark).touch(exist_ok=False)
            except FileExistsError:
                yield batch
            else:
                time.sleep(600)

    slow = routed(rows, routing_of(table)).mapInArrow(wait_once, "id bigint, note string")
    report = publish(table, write_in_tasks(slow, table))
    spark_jobs.write_table(rows.where("id < 10").selectExpr("id", "'b' AS note"), table)
    compacted = table.compact(executor=spark_jobs.SparkExecutor(spark))
    read = spark_jobs.read_table(spark, table)
    told = {
        "rows": report.rows,
        "files_out": compacted.files_out,
        "notes": {
            row.note: row.n
            for row in read.groupBy("note")
            .agg({"*": "count"})
            .withColumnRenamed("count(1)", "n")
            .collect()
        },
    }
    print("TOLD " + json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
