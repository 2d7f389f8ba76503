"""Assignment of rows to writers: rows of one key meet, for every kind of bucket."""

import json

import pyarrow as pa
import pytest

from spark_jobs import by_bucket, ingest, write_table

COLUMNS = [("id", "BIGINT"), ("dt", "STRING"), ("note", "STRING")]
SEVERAL = {"dynamic-bucket.target-row-num": "20"}
"""Keys in a bucket, so that there are several."""
TABLES = {
    "dynamic": {"primary_key": ["id"], "options": {"bucket": "-1", **SEVERAL}},
    "dynamic in partitions": {
        "primary_key": ["id", "dt"],
        "partition_by": ["dt"],
        "options": {"bucket": "-1", **SEVERAL},
    },
    "keys that move": {
        "primary_key": ["id"],
        "partition_by": ["dt"],
        "options": {"bucket": "-1", **SEVERAL},
    },
    "postponed": {"primary_key": ["id"], "options": {"bucket": "-2"}},
    "postponed in partitions": {
        "primary_key": ["id", "dt"],
        "partition_by": ["dt"],
        "options": {"bucket": "-2"},
    },
}


@pytest.fixture(params=TABLES)
def table(catalog, request):
    return catalog.create_table("shop.orders", COLUMNS, **TABLES[request.param])


def moved(table):
    """By how much keys are in another partition the second time, where they can be."""
    return 1 if not {*table.schema.partition_keys} <= {*table.schema.primary_keys} else 0


def rows_of(spark, count, note, by=0):
    numbers = spark.range(0, count, 1, 5)
    return numbers.selectExpr("id", f"concat('p', (id + {by}) % 7) AS dt", f"'{note}' AS note")


def content(table):
    table.compact()  # which is when postponed rows get their bucket
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def expected(table, count, newer):
    by = moved(table)
    return [
        (n, f"p{(n + by if n < newer else n) % 7}", "b" if n < newer else "a") for n in range(count)
    ]


@pytest.mark.sampled(3)
def test_rows_of_a_frame_come_in_and_newer_ones_replace_them(lake_spark, table):
    write_table(rows_of(lake_spark, 100, "a"), table)
    newer = rows_of(lake_spark, 30, "b", moved(table))
    by_bucket(newer, table).write.format("lake").mode("append").save("shop.orders")

    assert content(table) == expected(table, 100, 30)


@pytest.mark.sampled(3)
def test_rows_of_files_come_in_and_of_one_key_the_later_file_wins(
    spark, table, tmp_path, request_for
):
    for number, (count, note) in enumerate([(100, "a"), (30, "a"), (30, "b")]):
        by = moved(table) if note == "b" else 0
        rows = [{"id": n, "dt": f"p{(n + by) % 7}", "note": note} for n in range(count)]
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    ingest.run(request_for("*.jsonl", create=False, engine="spark"), spark)

    assert content(table) == expected(table, 100, 30)


def test_few_rows_that_get_their_bucket_later_make_few_files(spark, catalog):
    table = catalog.create_table("shop.orders", COLUMNS, **TABLES["postponed"])

    assert write_table(rows_of(spark, 40, "a"), table).files == 1


def test_what_rows_do_keeps_its_order_where_they_get_their_bucket_later(spark, catalog):
    table = catalog.create_table("shop.orders", COLUMNS, **TABLES["postponed"])
    kinds = pa.array(["+I", "-U", "+U", "-D"] * 50)
    told = pa.table(
        {
            "id": pa.array([n // 4 for n in range(200)], pa.int64()),
            "dt": ["p"] * 200,
            "note": ["a"] * 200,
            "does": pa.DictionaryArray.from_arrays(
                kinds.dictionary_encode().indices, kinds.unique()
            ).cast(pa.string()),
        }
    )

    write_table(spark.createDataFrame(told), table, kinds="does")

    assert content(table) == []
