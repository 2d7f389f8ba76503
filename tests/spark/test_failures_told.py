"""A failure while the JVM passes rows to Python is reported with its cause first."""

import pytest
from pyspark.sql import functions as sql

from spark_jobs import write_table
from spark_jobs.runtime.failure_text import failure_text


def test_a_failing_row_is_told_by_what_failed_and_where(spark, catalog):
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
