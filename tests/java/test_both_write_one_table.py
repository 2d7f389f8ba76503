"""One table, two writers: Java and this library build on each other's snapshots without loss."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.samples import FORMATS, samples_of
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("by", "STRING")]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("by", pa.string())])


def one_row(number: int, writer: str | None) -> pa.Table:
    return pa.table({"id": [number], "by": [writer]}, schema=SCHEMA)


def make_table(
    maker: str, catalog: lake.Catalog, peer: JavaPeer, options: dict[str, str] | None = None
) -> lake.Table:
    if maker == "java":
        peer.create_table("shop.orders", COLUMNS, options)
    else:
        catalog.create_table("shop.orders", COLUMNS, options=options)
    return catalog.table("shop.orders")


def assert_both_read(table: lake.Table, peer: JavaPeer, expected: list[list[object]]) -> None:
    assert_same(["id", "by"], json_rows(table.scan().to_arrow()), expected)
    assert_same(["id", "by"], peer.read("shop.orders").rows, expected)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("maker", ["java", "we"])
def test_interleaved_commits_lose_and_repeat_nothing(
    catalog: lake.Catalog, peer: JavaPeer, maker: str, file_format: str
):
    table = make_table(maker, catalog, peer, {"file.format": file_format})
    for number in (1, 3, 5):
        table.write(one_row(number, "lake"))
        peer.write("shop.orders", one_row(number + 1, None))
    assert_both_read(table, peer, [[n, "lake" if n % 2 else None] for n in range(1, 7)])
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == [1, 2, 3, 4, 5, 6]
    assert [snapshot.total_record_count for snapshot in snapshots] == [1, 2, 3, 4, 5, 6]


def test_what_either_says_of_a_commit_the_other_carries_on(catalog: lake.Catalog, peer: JavaPeer):
    table = make_table("we", catalog, peer)
    report = table.write(one_row(1, "lake"), watermark=1_700_000_000_000, properties={"a": "b"})
    ours = peer.call("describe", table="shop.orders")["snapshot"]
    assert (ours["id"], ours["watermark"], ours["properties"]) == (
        report.snapshot_id,
        1_700_000_000_000,
        {"a": "b"},
    )
    peer.write("shop.orders", one_row(2, "java"))
    table.write(one_row(3, "lake"))
    assert [snapshot.watermark for snapshot in table.snapshots()] == [1_700_000_000_000] * 3


def test_a_retry_after_java_committed_still_publishes_once(catalog: lake.Catalog, peer: JavaPeer):
    table = make_table("we", catalog, peer)
    identity = lake.CommitId("dag.run.task", 1)
    table.write(one_row(1, "lake"), commit=identity)
    peer.write("shop.orders", one_row(2, "java"))
    assert table.write(one_row(1, "lake"), commit=identity).replayed
    assert_both_read(table, peer, [[1, "lake"], [2, "java"]])


@pytest.mark.parametrize("maker", ["java", "we"])
def test_manifests_that_either_merged_are_read_by_the_other(
    catalog: lake.Catalog, peer: JavaPeer, tmp_path: Path, maker: str
):
    options = {"manifest.merge-min-count": "3", "manifest.full-compaction-threshold-size": "1 kb"}
    table = make_table(maker, catalog, peer, options)
    for number in range(0, 16, 2):
        table.write(one_row(number, "lake"))
        peer.write("shop.orders", one_row(number + 1, "java"))
    expected = [[n, "java" if n % 2 else "lake"] for n in range(16)]
    assert_both_read(table, peer, expected)
    assert len(catalog.table("shop.orders$manifests").scan().to_arrow()) < 16


def test_files_that_java_compacted_are_appended_to(catalog: lake.Catalog, peer: JavaPeer):
    table = make_table("we", catalog, peer)
    for number in range(4):
        table.write(one_row(number, "lake"))
    peer.call("compact", table="shop.orders", options={"compaction.min.file-num": "2"})
    table.write(one_row(4, "lake"))
    assert_both_read(table, peer, [[n, "lake"] for n in range(5)])
    assert len(peer.call("live_files", table="shop.orders")) == 2
    assert table.scan(snapshot=4).to_arrow().num_rows == 4


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_table_of_every_type_is_written_by_both(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str
):
    columns = [
        column
        for column in samples_of(file_format)
        if file_format != "orc" or not column.type.startswith("CHAR(")
    ]  # Java cuts the spaces off that fill up a CHAR of an ORC file, and of no other; we never do
    types = [(column.name, column.type) for column in columns]
    table = catalog.create_table("shop.t", types, options={"file.format": file_format})
    length = max(len(column.values) for column in columns) + 1
    schema = table.schema.arrow_schema()
    arrays = [
        pa.array([*column.values, *[None] * (length - len(column.values))], kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    table.write(rows)
    peer.write("shop.t", rows)
    assert_same(schema.names, json_rows(table.scan().to_arrow()), json_rows(rows) * 2)
    assert_same(schema.names, peer.read("shop.t").rows, json_rows(rows) * 2)


def test_each_sees_the_columns_that_the_other_changed(catalog: lake.Catalog, peer: JavaPeer):
    table = catalog.create_table("shop.orders", [("id", "INT"), ("old", "STRING")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "old": ["one"]}))
    peer.alter_table("shop.orders", ("rename", "old", "new"), ("retype", "id", "BIGINT"))
    table = catalog.alter_table("shop.orders", lake.add_column("more", "ARRAY<INT>"))
    schema = table.schema.arrow_schema()
    peer.write("shop.orders", pa.table({"id": [2], "new": ["two"], "more": [[1]]}, schema=schema))
    table.write(pa.table({"id": [2**40], "new": [None], "more": [[]]}, schema=schema))
    expected = [[1, "one", None], [2, "two", [1]], [2**40, None, []]]
    assert_same(schema.names, json_rows(table.scan().to_arrow()), expected)
    assert_same(schema.names, peer.read("shop.orders").rows, expected)
