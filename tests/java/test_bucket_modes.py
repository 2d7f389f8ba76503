"""Dynamic, postponed and rescaled buckets as our writers make them: Java reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.wire import assert_same, json_rows

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]


def create(catalog: lake.Catalog, *key: str, **options: str) -> lake.Table:
    return catalog.create_table(
        "shop.orders", COLUMNS, primary_key=key, partition_by=["dt"], options=options
    )


def rows(ids: Any, note: str, day: str | None = None) -> pa.Table:
    """The keys, in one partition or half of them in another."""
    found = [{"dt": day or f"d{n % 2}", "id": n, "note": note} for n in ids]
    return pa.Table.from_pylist(found)


def assert_java_agrees(peer: JavaPeer, table: lake.Table, count: int) -> None:
    java = peer.read("shop.orders")
    assert_same(java.columns, java.rows, json_rows(table.scan().to_arrow()))
    assert len(java.rows) == count


def test_a_dynamic_table_is_read_and_compacted(catalog: lake.Catalog, peer: JavaPeer):
    table = create(catalog, "dt", "id", bucket="-1", **{"dynamic-bucket.target-row-num": "7"})
    for note, ids in {"a": range(20), "b": range(10, 30), "c": range(0, 50, 3)}.items():
        table.write(rows(ids, note))
        assert_java_agrees(peer, table, len({*table.scan().to_arrow()["id"].to_pylist()}))
    peer.call("compact", table="shop.orders")
    table.write(rows(range(60), "d"))
    assert_java_agrees(peer, table, 60)
    indexes = peer.read("shop.orders$table_indexes")
    assert sum(indexes.column("row_count")) == 60


def test_rows_that_moved_between_partitions_are_read_once(catalog: lake.Catalog, peer: JavaPeer):
    table = create(catalog, "id", bucket="-1")
    for day in ("mon", "tue", "wed"):
        table.write(rows(range(5), day, day))
    assert_java_agrees(peer, table, 5)
    peer.call("compact", table="shop.orders")
    assert_java_agrees(peer, table, 5)


def test_postponed_rows_are_seen_once_they_have_their_bucket(catalog: lake.Catalog, peer: JavaPeer):
    table = create(catalog, "dt", "id", bucket="-2", **{"postpone.default-bucket-num": "2"})
    table.write(rows(range(20), "a"))
    table.write(rows(range(10, 30), "b"))
    assert_java_agrees(peer, table, 0)
    table.compact()
    assert_java_agrees(peer, table, 30)


def test_a_rescaled_table_is_read(catalog: lake.Catalog, peer: JavaPeer):
    table = create(catalog, "dt", "id", bucket="2")
    table.write(rows(range(30), "a"))
    catalog.alter_table("shop.orders", lake.set_option("bucket", "5"))
    table = catalog.table("shop.orders")
    table.rescale()
    table.write(rows(range(20, 40), "b"))
    assert_java_agrees(peer, table, 40)
