"""A driver whose rows wait in files for the tasks that write them; one task before never ends.

write_by_pieces.py WAREHOUSE MARK
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext

import lakeformat as lake
import spark_jobs


def main() -> None:
    warehouse, mark = sys.argv[1:]
    spark = spark_jobs.session("write by pieces", master="local[2]", warehouse=warehouse)

    def stay(batches):
        yield next(batches)
        if TaskContext.get().partitionId() == 1:
            while not [*Path(mark).parent.rglob("lake-spill-*/*.arrows")]:
                time.sleep(0.05)
            Path(mark).touch()
            time.sleep(600)

    rows = spark.range(0, 100, 1, 2).mapInArrow(stay, "id bigint")
    rows = rows.selectExpr("id", "'a' AS note")
    spark_jobs.write_table(rows, "shop.orders", commit=lake.CommitId("run", 1))


if __name__ == "__main__":
    main()
