"""What fails while the JVM writes rows for Python is told from its end: the cause first."""

from pathlib import Path

import pytest
from pyspark.sql import functions as sql

from spark_jobs import write_table
from spark_jobs.failure_text import failure_text
from spark_jobs.frames import local_files


def test_a_failing_row_is_told_by_what_failed_and_where(spark, catalog, monkeypatch):
    monkeypatch.setattr(local_files, "LEAST_BYTES", 0)
    table = catalog.create_table(
        "shop.priced", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "2"}
    )

    def price(number):
        if number == 99:
            raise ValueError("pear has no price")
        return number

    rows = spark.range(100).select(sql.udf(price, "bigint")("id").alias("id"))
    with pytest.raises(Exception, match="pear has no price") as failed:
        write_table(rows, table)

    said = failure_text(failed.value)
    assert said.startswith("ValueError: pear has no price (File ")
    assert said.endswith("in price)")
    assert table.latest_snapshot() is None


def test_a_disk_that_takes_no_file_is_told_with_what_helps(spark):
    with pytest.raises(Exception, match="failed") as failed:
        local_files.in_local_files(spark.range(10), Path("/proc/lake-spill-1/rows"))

    said = failure_text(failed.value)
    assert said.startswith("IOException: Mkdirs failed to create file:/proc/lake-spill-1/rows/")
    assert said.endswith(
        "set TMPDIR to another directory before Spark starts. Nothing was published"
    )
