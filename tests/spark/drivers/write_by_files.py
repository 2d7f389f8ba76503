"""A driver whose rows go to Python by files of the JVM; one task of that stage never ends.

write_by_files.py WAREHOUSE MARK
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext

import lakeformat as lake
import spark_jobs
from spark_jobs.frames import local_files


def main() -> None:
    warehouse, mark = sys.argv[1:]
    local_files.LEAST_BYTES = 0
    spark = spark_jobs.session("write by files", master="local[2]", warehouse=warehouse)

    def stay(batches):
        yield next(batches)
        if TaskContext.get().partitionId() == 1:
            while not [*Path(mark).parent.rglob("lake-spill-*/rows/**/*.parquet")]:
                time.sleep(0.05)
            Path(mark).touch()
            time.sleep(600)

    rows = spark.range(0, 100, 1, 2).mapInArrow(stay, "id bigint")
    rows = rows.selectExpr("id", "'a' AS note")
    spark_jobs.write_table(rows, "shop.orders", commit=lake.CommitId("run", 1))


if __name__ == "__main__":
    main()
