"""``format("lake")`` through Spark: rows there and back, what is refused, and SQL views."""

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import by_bucket, create_views, write_table
from tests.spark.orders import data_files


@pytest.fixture
def orders(catalog):
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING"), ("note", "STRING")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )


@pytest.fixture
def rows(lake_spark):
    return lake_spark.range(0, 20, 1, 3).selectExpr("id", "concat('p', id % 2) dt", "'a' note")


def save(rows, mode="append", **options):
    by_bucket(rows, "shop.orders").write.format("lake").mode(mode).options(**options).save(
        "shop.orders"
    )


def ids(frame):
    return sorted(row.id for row in frame.collect())


def test_rows_come_back_as_they_were_written(lake_spark, orders, rows):
    save(rows)
    save(rows.limit(3).selectExpr("id", "dt", "'b' note"))
    read = lake_spark.read.format("lake").load("shop.orders")

    assert ids(read) == [*range(20)]
    assert read.where("note = 'b' AND id >= 0").count() == 3
    assert read.schema.simpleString() == "struct<id:bigint,dt:string,note:string>"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_offered", ["true", "false"])
def test_what_was_asked_of_a_frame_before_changes_no_answer(lake_spark, orders, rows, is_offered):
    """Also where the session lets Python data sources take filters."""
    write_table(rows, orders)
    offered = "spark.sql.python.filterPushdown.enabled"
    lake_spark.conf.set(offered, is_offered)
    try:
        read = lake_spark.read.format("lake").load("shop.orders")
        both = read.where("id < 3").unionAll(read.where("id >= 17"))

        assert ids(both) == [0, 1, 2, 17, 18, 19]
        assert read.count() == 20
        assert read.where("id = 3 OR note = 'b'").count() == 1
    finally:
        lake_spark.conf.unset(offered)


def test_two_writers_of_a_bucket_are_refused_and_leave_nothing(lake_spark, orders, rows, warehouse):
    with pytest.raises(Exception, match=r"of spark_jobs\.by_bucket\(rows, table\)"):
        rows.write.format("lake").mode("append").save("shop.orders")

    assert orders.latest_snapshot() is None
    assert data_files(warehouse) == []


def test_no_key_of_the_storage_is_in_a_plan(lake_spark, orders, warehouse):
    from spark_jobs import read_table, register

    register(lake_spark, warehouse, {"jdbc.password": "hunter2"})
    plans = []
    try:
        source = lake_spark.read.format("lake").option("warehouse", warehouse)
        with pytest.raises(Exception, match="jdbc") as refused:
            source.load("shop.orders").collect()
        plans.append(str(refused.value))
        frame = read_table(lake_spark, orders)
        plans.append(frame._jdf.queryExecution().toString())
    finally:
        register(lake_spark, warehouse)

    assert not [plan for plan in plans if "hunter2" in plan]
    assert "hunter2" not in str(dict(lake_spark.sparkContext.getConf().getAll()))


def test_views_show_rows_changes_and_metadata_to_sql(lake_spark, orders, rows):
    save(rows)

    made = create_views(lake_spark, "shop.orders")

    assert {"orders", "orders_changes", "orders_snapshots", "orders_files"} <= {*made}
    found = lake_spark.sql(
        "SELECT (SELECT count(*) FROM orders) AS rows, max(snapshot_id) AS newest "
        "FROM orders_snapshots"
    ).collect()
    assert [(row.rows, row.newest) for row in found] == [(20, 1)]
    assert create_views(lake_spark, orders) == create_views(lake_spark, orders.location) == made


def test_the_view_of_changes_of_a_mixed_table_has_the_first_commit(lake_spark, tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL")]
    table = catalog.create_table("shop.stock", columns, format="mixed", primary_key=["id"])
    for number in (1, 2):
        table.write(pa.table({"id": [number]}))
    create_views(lake_spark, table)
    assert lake_spark.sql("SELECT count(DISTINCT id) AS n FROM stock_changes").first().n == 2
