"""One table, two writers: both see every row, and each builds on the other's snapshots."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import Row, assert_same_rows, rows_of
from tests.interop.every_type import all_values, column_list
from tests.interop.peer import Peer

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("by", pa.string())])


def one_row(number: int, writer: str | None) -> pa.Table:
    return pa.table({"id": [number], "by": [writer]}, schema=SCHEMA)


def make_table(maker: str, catalog: lake.Catalog, peer: Peer) -> lake.Table:
    if maker == "pypaimon":
        peer.create_table("shop.orders", SCHEMA)
    else:
        catalog.create_table("shop.orders", SCHEMA)
    return catalog.table("shop.orders")


def test_every_type_pypaimon_wrote_is_read_and_appended_to(catalog: lake.Catalog, peer: Peer):
    rows = all_values(catalog.create_table("shop.model", column_list()).schema.arrow_schema())
    peer.create_table("shop.wide", rows.schema)
    peer.write("shop.wide", rows)
    table = catalog.table("shop.wide")
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(rows))
    table.write(rows)
    assert_same_rows(rows_of(peer.read("shop.wide")), rows_of(rows) * 2)


@pytest.mark.parametrize("maker", ["pypaimon", "we"])
def test_interleaved_commits_lose_and_repeat_nothing(catalog: lake.Catalog, peer: Peer, maker: str):
    table = make_table(maker, catalog, peer)
    for number in (1, 3, 5):
        table.write(one_row(number, "lake"))
        peer.write("shop.orders", one_row(number + 1, None))
    expected = [{"id": n, "by": "lake" if n % 2 else None} for n in range(1, 7)]
    assert_same_rows(rows_of(table.scan().to_arrow()), expected)
    assert_same_rows(rows_of(peer.read("shop.orders")), expected)


@pytest.mark.parametrize("maker", ["pypaimon", "we"])
def test_each_writer_continues_the_others_snapshots(catalog: lake.Catalog, peer: Peer, maker: str):
    table = make_table(maker, catalog, peer)
    peer.write("shop.orders", one_row(1, "pypaimon"))
    report = table.write(one_row(2, "lake"))
    peer.write("shop.orders", one_row(3, "pypaimon"))
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == [1, 2, 3]
    assert [snapshot.total_record_count for snapshot in snapshots] == [1, 2, 3]
    assert [snapshot.delta_record_count for snapshot in snapshots] == [1, 1, 1]
    assert report.snapshot_id == 2
    assert peer.describe("shop.orders")["latest_snapshot"] == 3


def test_a_retry_after_pypaimon_committed_still_publishes_once(catalog: lake.Catalog, peer: Peer):
    table = make_table("we", catalog, peer)
    identity = lake.CommitId("dag.run.task", 1)
    table.write(one_row(1, "lake"), commit=identity)
    peer.write("shop.orders", one_row(2, "pypaimon"))
    again = table.write(one_row(1, "lake"), commit=identity)
    assert again.replayed
    assert peer.read("shop.orders").num_rows == 2


def test_an_older_snapshot_of_either_writer_can_be_read(catalog: lake.Catalog, peer: Peer):
    table = make_table("pypaimon", catalog, peer)
    peer.write("shop.orders", one_row(1, "pypaimon"))
    table.write(one_row(2, "lake"))
    ids = [table.scan(snapshot=number).to_arrow()["id"].to_pylist() for number in (1, 2)]
    assert ids == [[1], [1, 2]]


def test_columns_pypaimon_dropped_renamed_and_added_keep_their_values_apart(
    catalog: lake.Catalog, peer: Peer
):
    columns = [("id", "BIGINT"), ("old", "STRING"), ("gone", "INT")]
    before = catalog.create_table("shop.orders", columns)
    before.write(pa.table({"id": [1], "old": ["one"], "gone": [10]}))
    peer.change_columns("shop.orders", drop=["gone"], rename={"old": "new"}, add=["later"])
    peer.change_columns("shop.orders", drop=[], rename={}, add=["gone"])
    before.write(pa.table({"id": [2], "old": ["two"], "gone": [20]}))
    after = catalog.table("shop.orders")
    rows = pa.table({"id": [3], "new": ["three"], "later": [31], "gone": [32]})
    after.write(rows)
    peer.write("shop.orders", rows.cast(after.schema.arrow_schema()))
    expected: list[Row] = [
        {"id": 1, "new": "one", "later": None, "gone": None},
        {"id": 2, "new": "two", "later": None, "gone": None},
        *[{"id": 3, "new": "three", "later": 31, "gone": 32}] * 2,
    ]
    assert_same_rows(rows_of(after.scan().to_arrow()), expected)
    assert_same_rows(rows_of(peer.read("shop.orders")), expected)


def test_watermark_and_properties_of_our_commits_do_not_disturb_pypaimon(
    catalog: lake.Catalog, peer: Peer
):
    table = make_table("we", catalog, peer)
    table.write(one_row(1, "lake"), watermark=1_700_000_000_000, properties={"job": "ingest"})
    peer.write("shop.orders", one_row(2, "pypaimon"))
    table.write(one_row(3, "lake"), watermark=1_600_000_000_000)
    assert peer.read("shop.orders").num_rows == 3
