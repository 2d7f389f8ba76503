"""Spark and a table whose own options name a state: readers see it, upkeep works on the head."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import (
    compact,
    count_table,
    create_views,
    ingest,
    maintain,
    read_changes,
    read_table,
    rescale,
    write_table,
)

KEYED = {"primary_key": ["id"], "options": {"bucket": "1", "changelog-producer": "input"}}
STATES = [
    ({"scan.snapshot-id": "2"}, [1, 2]),
    ({"scan.tag-name": "old"}, [1]),
    ({"scan.version": "old"}, [1]),
    ({"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}, [1]),
    ({"scan.mode": "latest-full"}, [1, 2, 3]),
    ({"scan.file-creation-time-millis": "32503680000000"}, []),
]


@pytest.fixture(params=[{}, KEYED], ids=["append", "keyed"])
def orders(request, catalog):
    """A table of three snapshots with rows 1, 1 and 2, 1 to 3; the first has the tag ``old``."""
    made = catalog.create_table("shop.orders", [("id", "BIGINT NOT NULL")], **request.param)
    for number in (1, 2, 3):
        made.write(pa.table({"id": [number]}), watermark=number * 10)
    made.tags.create("old", snapshot=1)
    return made


def with_options(catalog, options):
    changes = [lake.set_option(*each) for each in options.items()]
    catalog.alter_table("shop.orders", *changes)
    return catalog.table("shop.orders")


def ids(rows):
    found = rows.to_arrow() if isinstance(rows, lake.Scan) else rows.toArrow()
    return sorted(found["id"].to_pylist())


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("options", "shown"), STATES, ids=lambda each: "-".join(map(str, each)))
def test_each_way_to_read_on_spark_shows_what_the_library_shows(
    catalog, orders, lake_spark, options, shown
):
    table = with_options(catalog, options)
    assert ids(table.scan()) == shown
    assert ids(read_table(lake_spark, table)) == shown
    assert ids(read_table(lake_spark, table, native=False)) == shown
    assert count_table(lake_spark, table) == len(shown)
    assert ids(lake_spark.read.format("lake").load("shop.orders")) == shown
    create_views(lake_spark, "shop.orders", warehouse=catalog.location)
    assert ids(lake_spark.table("orders")) == shown


def test_what_a_read_names_wins(catalog, orders, lake_spark):
    table = with_options(catalog, {"scan.tag-name": "old"})
    reader = lake_spark.read.format("lake").option("scan.snapshot-id", "2")
    assert ids(reader.load("shop.orders")) == [1, 2]
    assert ids(read_table(lake_spark, table, snapshot=2)) == [1, 2]
    assert count_table(lake_spark, table, as_of="2999-01-01") == 3


def test_changes_are_read_up_to_the_head(catalog, orders, lake_spark):
    table = with_options(catalog, {"scan.snapshot-id": "1"})
    assert ids(read_changes(lake_spark, table, 1)) == [2, 3]
    reader = lake_spark.read.format("lake").option("incremental-between", "1,3")
    assert ids(reader.load("shop.orders")) == [2, 3]


@pytest.mark.sampled(1)
def test_a_stream_begins_with_the_head_and_goes_on(catalog, orders, lake_spark, tmp_path):
    table = with_options(catalog, {"scan.snapshot-id": "1"})
    catalog.create_table("shop.copy", [("id", "BIGINT NOT NULL")])
    for more in ([], [4]):
        if more:
            table.write(pa.table({"id": more}))
        rows = lake_spark.readStream.format("lake").option("rowkind", False).load("shop.orders")
        writer = rows.writeStream.format("lake").trigger(availableNow=True)
        query = writer.option("checkpointLocation", tmp_path / "kept").start("shop.copy")
        query.awaitTermination()
    assert ids(catalog.table("shop.copy").scan()) == [1, 2, 3, 4]


def test_a_follower_on_spark_gets_all_rows_of_the_head(catalog, orders, warehouse, lake_spark):
    with_options(catalog, {"scan.tag-name": "old"})
    request = {
        "warehouse": warehouse,
        "table": "shop.copy",
        "source_table": "shop.orders",
        "consumer": "copy",
        "create": True,
        "engine": "spark",
    }
    ingest.run(request, lake_spark)
    assert ids(catalog.table("shop.copy").scan(newest=True)) == [1, 2, 3]


def test_a_state_that_is_gone_stops_spark_with_the_library_s_sentence(catalog, orders, lake_spark):
    table = with_options(catalog, {"scan.snapshot-id": "9"})
    with pytest.raises(lake.NotFoundError) as on_python:
        table.scan()
    with pytest.raises(lake.NotFoundError) as on_spark:
        read_table(lake_spark, table)
    assert str(on_spark.value) == str(on_python.value)
    with pytest.raises(Exception, match=r"snapshot 9 of .* correct or remove the option"):
        lake_spark.read.format("lake").load("shop.orders").collect()


DUE = {"compaction.min.file-num": "2", "num-sorted-run.compaction-trigger": "2"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{"scan.snapshot-id": "1"}, {"scan.tag-name": "old"}])
@pytest.mark.parametrize("strategy", ["full", "minor"])
def test_a_compaction_on_spark_rewrites_the_head(
    catalog, orders, warehouse, lake_spark, options, strategy
):
    table = with_options(catalog, {**options, **DUE})
    request = {"warehouse": warehouse, "table": "shop.orders", "engine": "spark"}

    assert not compact.run({**request, "strategy": strategy}, lake_spark)["skipped"]

    assert table.latest_snapshot().commit_kind == "COMPACT"
    assert_one_file_of_the_head(table, lake_spark)


@pytest.mark.parametrize("orders", [{}], indirect=True, ids=["append"])
def test_a_sorted_compaction_on_spark_rewrites_the_head(catalog, orders, warehouse, lake_spark):
    table = with_options(catalog, {"scan.tag-name": "old"})
    request = {"warehouse": warehouse, "table": "shop.orders", "engine": "spark"}
    compact.run({**request, "order_by": ["id"]}, lake_spark)
    assert_one_file_of_the_head(table, lake_spark)


def test_maintenance_on_spark_looks_after_the_head(catalog, orders, warehouse, lake_spark):
    table = with_options(catalog, {"scan.tag-name": "old", **DUE})
    maintain.run({"warehouse": warehouse, "table": "shop.orders", "engine": "spark"}, lake_spark)
    assert_one_file_of_the_head(table, lake_spark)


def assert_one_file_of_the_head(table, spark):
    """All three rows are in one file, and a reader still sees the state that is named."""
    assert table.system_table("files").scan(newest=True).to_arrow().num_rows == 1
    assert ids(table.scan(newest=True)) == [1, 2, 3]
    assert ids(read_table(spark, table)) == [1]


def test_buckets_of_the_head_are_rescaled_on_spark(catalog, warehouse, lake_spark):
    table = catalog.create_table("shop.orders", [("id", "BIGINT NOT NULL")], **KEYED)
    for number in (1, 2):
        table.write(pa.table({"id": [number]}))
    with_options(catalog, {"scan.snapshot-id": "1"})
    request = {"warehouse": warehouse, "table": "shop.orders", "bucket": 2, "engine": "spark"}
    rescale.run(request, lake_spark)
    assert ids(catalog.table("shop.orders").scan(newest=True)) == [1, 2]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("mode", "after"), [("append", [1, 2, 3, 4]), ("overwrite", [4]), ("dynamic", [4])]
)
def test_writes_on_spark_follow_the_head(catalog, orders, lake_spark, mode, after):
    table = with_options(catalog, {"scan.snapshot-id": "1"})
    frame = lake_spark.createDataFrame([(4,)], "id long")
    write_table(frame, table, mode=mode)
    assert ids(table.scan(newest=True)) == after
    assert ids(read_table(lake_spark, table)) == [1]
