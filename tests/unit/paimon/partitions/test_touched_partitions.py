"""The partitions that a range of commits changed."""

import pyarrow as pa
import pytest

import lakeformat as lake


@pytest.fixture
def orders(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("dt", "STRING"), ("hour", "INT")]
    return catalog.create_table("shop.orders", columns, partition_by=["dt", "hour"])


def write(table, *places):
    days, hours = zip(*places, strict=True)
    table.write(
        pa.table({"id": [1] * len(places), "dt": days, "hour": pa.array(hours, pa.int32())})
    )


def test_only_the_commits_of_the_range_count(orders):
    write(orders, ("a", 1), ("b", 1))
    write(orders, ("b", 2))
    write(orders, ("b", 1))

    assert orders.touched_partitions(after=1, upto=3) == [
        {"dt": "b", "hour": "1"},
        {"dt": "b", "hour": "2"},
    ]
    assert orders.touched_partitions(after=3, upto=3) == []


def test_a_partition_that_was_emptied_was_touched(orders):
    write(orders, ("a", 1), (None, 2))
    orders.drop_partitions([{"dt": "a"}])
    assert orders.touched_partitions(after=1, upto=2) == [{"dt": "a", "hour": "1"}]
    assert {"dt": None, "hour": "2"} in orders.touched_partitions(after=0, upto=1)


def test_a_table_without_partitions_has_none(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.plain", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    assert table.touched_partitions(after=0, upto=1) == []
