"""A table that Java compacts as well: its compactions bear no mark, and it reads ours."""

from __future__ import annotations

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot import COMPACTION_MARK
from tests.java.peer_process import JavaPeer
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("by", "STRING")]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("by", pa.string())])


def java_writes(peer: JavaPeer, number: int) -> None:
    rows = pa.table({"id": [number], "by": ["java"]}, schema=SCHEMA)
    peer.write("shop.orders", rows)


def test_a_java_compaction_is_named_until_the_table_is_write_only(
    catalog: lake.Catalog, peer: JavaPeer
):
    peer.create_table("shop.orders", COLUMNS, {"bucket": "1"}, primary_keys=["id"])
    table = catalog.table("shop.orders")
    for number in range(3):
        java_writes(peer, number)
    assert table.other_compactor() is None
    peer.call("compact", table="shop.orders")

    other = table.other_compactor()

    newest = table.latest_snapshot()
    assert (newest.commit_kind, other.snapshot_id) == (lake.CommitKind.COMPACT, newest.id)
    assert other.commit_user == newest.commit_user
    catalog.alter_table("shop.orders", lake.set_option("write-only", "true"))
    assert table.other_compactor() is None


def test_java_reads_and_goes_on_after_a_compaction_that_bears_our_mark(
    catalog: lake.Catalog, peer: JavaPeer
):
    options = {"bucket": "1", "write-only": "true"}
    peer.create_table("shop.orders", COLUMNS, options, primary_keys=["id"])
    table = catalog.table("shop.orders")
    for number in range(3):
        java_writes(peer, number)
    table.compact()

    ours = peer.call("describe", table="shop.orders")["snapshot"]
    java_writes(peer, 3)

    assert ours["commitKind"] == "COMPACT"
    assert set(ours["properties"]) == {COMPACTION_MARK}
    rows = [[number, "java"] for number in range(4)]
    assert_same(["id", "by"], peer.read("shop.orders").rows, rows)
    assert_same(["id", "by"], json_rows(table.scan().to_arrow()), rows)
