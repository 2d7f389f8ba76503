"""Loads the classes that most of the tests' Sparks load: SQL, Python and a stream."""

import tempfile

from pyspark.sql import SparkSession


def same(batches):
    yield from batches


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "'a' AS note")
    rows.mapInArrow(same, rows.schema).groupBy("note").count().toPandas()
    with tempfile.TemporaryDirectory() as folder:
        rows.write.parquet(f"{folder}/rows")
        stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/rows").writeStream
        stream = stream.option("checkpointLocation", f"{folder}/checkpoint")
        stream = stream.foreachBatch(lambda batch, _: batch.collect())
        stream.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
