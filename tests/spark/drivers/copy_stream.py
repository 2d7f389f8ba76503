"""A driver that copies what is new in a table into another, by a stream, and ends.

copy_stream.py WAREHOUSE CHECKPOINT SINK        SINK is format or foreachBatch
"""

import os
import sys
from pathlib import Path

import spark_jobs


def main() -> None:
    warehouse, checkpoint, sink = sys.argv[1:]
    if count := os.environ.get("LAKE_KILL_COUNT"):
        Path(f"{count}.group").write_text(str(os.getpgid(0)))
    spark = spark_jobs.session("copy", master="local[1]", warehouse=warehouse)
    reader = spark.readStream.format("lake").option("max-snapshots-per-batch", "1")
    rows = reader.option("consumer-id", "copy").load("shop.events")
    if sink == "format":
        writer = spark_jobs.by_bucket(rows, "shop.copy").writeStream.format("lake")
        writer = writer.option("path", "shop.copy")
    else:
        writer = rows.writeStream.foreachBatch(spark_jobs.write_stream_batch("shop.copy"))
    query = writer.option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
