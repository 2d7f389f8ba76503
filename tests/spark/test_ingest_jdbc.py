"""Spark reads a SQL table over JDBC: Derby, the database that Spark itself brings."""

from __future__ import annotations

import pytest

import lakeformat as lake
from spark_jobs.ingest import run

KEYED = {"primary_key": ["id"], "table_options": {"bucket": "2"}}
DRIVER = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}


@pytest.fixture
def orders(tmp_path, spark):
    """A table of three orders; the database lives as long as Spark."""
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    frame = spark.createDataFrame([(1, "a"), (2, None), (3, "c")], "id bigint, note string")
    frame.write.format("jdbc").options(url=url, dbtable="orders", **DRIVER).save()
    return url


def request_for(warehouse, url, **more):
    return {
        "warehouse": warehouse,
        "table": "shop.orders",
        "engine": "spark",
        "jdbc_url": url,
        "jdbc_table": "orders",
        "source_options": DRIVER,
        "create": True,
        **more,
    }


@pytest.mark.parametrize("keys", [{}, KEYED], ids=["append", "keyed"])
def test_a_table_is_read_in_tasks_and_committed_once(warehouse, orders, spark, keys):
    who = {"commit_user": "run", "commit_identifier": 1}
    results = [run(request_for(warehouse, orders, **who, **keys), spark) for _ in "ab"]
    found = lake.open_catalog(warehouse).table("shop.orders").scan().to_arrow().to_pylist()

    assert [each["replayed"] for each in results] == [False, True]
    assert sorted(tuple(row.values()) for row in found) == [(1, "a"), (2, None), (3, "c")]


@pytest.mark.parametrize("name", ["nothing", "(SELECT * FROM orders) t", 'orders" --'])
def test_what_is_no_table_is_refused_without_the_address(warehouse, orders, spark, name):
    with pytest.raises(lake.NotFoundError, match="the SQL database has no table") as refused:
        run(request_for(warehouse, orders, jdbc_table=name), spark)
    assert "derby" not in str(refused.value)


def test_a_missing_driver_is_refused_with_what_to_add(warehouse, spark):
    with pytest.raises(lake.InvalidRequestError, match=r"the driver's jar to spark\.jars"):
        run(request_for(warehouse, "jdbc:nothing:x", source_options={}), spark)


def test_an_address_of_the_other_engine_is_refused(warehouse, spark):
    with pytest.raises(lake.InvalidRequestError, match="write a JDBC address"):
        run(request_for(warehouse, "sqlite:///x"), spark)


def test_new_columns_are_added_and_types_widened(warehouse, orders, spark):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "INT")])
    request = request_for(warehouse, orders, create=False)

    with pytest.raises(lake.InvalidRequestError, match="With on_schema_change='add' the job adds"):
        run(request, spark)
    run({**request, "on_schema_change": "widen"}, spark)

    found = catalog.table("shop.orders").scan().to_arrow()
    assert [str(each) for each in found.schema.types] == ["int64", "string"]
    assert found.num_rows == 3


def test_columns_are_renamed_and_cast(warehouse, orders, spark):
    mapping = {"columns": {"order_id": "id"}, "casts": {"order_id": "INT"}}

    run(request_for(warehouse, orders, **mapping), spark)

    found = lake.open_catalog(warehouse).table("shop.orders").scan().to_arrow()
    assert [f"{each.name} {each.type}" for each in found.schema] == [
        "order_id int32",
        "note string",
    ]
    assert sorted(found["order_id"].to_pylist()) == [1, 2, 3]


def test_a_column_that_the_database_lacks_is_refused_with_the_nearest(warehouse, orders, spark):
    with pytest.raises(lake.InvalidRequestError, match=r"does not have: .* did you mean 'note'"):
        run(request_for(warehouse, orders, columns={"remark": "notes"}), spark)


def test_casts_need_a_spark_that_refuses_what_it_cannot_cast(warehouse, orders, spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(
            lake.InvalidRequestError, match=r"needs Spark's setting spark\.sql\.ansi"
        ):
            run(request_for(warehouse, orders, casts={"id": "INT"}), spark)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_copy_replaces_the_previous_one(warehouse, orders, spark):
    for _ in range(2):
        run(request_for(warehouse, orders, overwrite="table"), spark)

    found = lake.open_catalog(warehouse).table("shop.orders").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 2, 3]
