"""A driver that writes one commit, and stops for its test at a moment of it.

write_once.py MASTER WAREHOUSE MOMENT MARK        MOMENT is before, during or after
"""

import sys
import time
from pathlib import Path

import lakeformat as lake
import spark_jobs
from lakeformat.storage.local import LocalStorage


def main() -> None:
    master, warehouse, moment, mark = sys.argv[1:]

    def stop() -> None:
        Path(mark).touch()
        time.sleep(600)

    publish, create = lake.Table.commit, LocalStorage.create

    def commit(table, *args, **kwargs):
        if moment == "before":
            stop()
        report = publish(table, *args, **kwargs)
        stop()
        return report

    def publishing(storage, path, content):
        done = create(storage, path, content)
        if moment == "during" and Path(path).name.startswith("snapshot-"):
            stop()
        return done

    lake.Table.commit, LocalStorage.create = commit, publishing
    spark = spark_jobs.session("write once", master=master, warehouse=warehouse)
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS note")
    spark_jobs.write_table(rows, "shop.orders", commit=lake.CommitId("run", 1))


if __name__ == "__main__":
    main()
