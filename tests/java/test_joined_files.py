"""Files that were joined without being decoded, those of Java too: Java reads and changes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.paimon.compact import joined_files
from lakeformat.paimon.read.plan import plan_files
from tests.java.peer_process import JavaPeer
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING"), ("price", "DECIMAL(10, 2)")]


def some_rows(table: lake.Table, ids: range) -> pa.Table:
    rows = [{"id": n, "name": f"name {n % 3}" if n % 4 else None, "price": n} for n in ids]
    return pa.Table.from_pylist(rows, table.schema.arrow_schema())


@pytest.mark.parametrize("writer", ["java", "here"])
def test_java_reads_and_compacts_what_was_joined(
    catalog: lake.Catalog, peer: JavaPeer, monkeypatch: pytest.MonkeyPatch, writer: str
):
    monkeypatch.setattr(joined_files, "_LEAST_GROUP_ROWS", 1)
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["id"], options={"bucket": "1"})
    for start in (10, 0, 20):
        rows = some_rows(table, range(start, start + 10))
        peer.write("shop.t", rows) if writer == "java" else table.write(rows)
    table.compact()
    [file] = [entry.file for entry in plan_files(table._handle, table.latest_snapshot())]
    [path] = Path(table._handle.uri.removeprefix("file://")).rglob(file.file_name)
    assert pq.read_metadata(path).num_row_groups == 3

    def java_reads_the_same() -> None:
        java = peer.read("shop.t")
        ours = table.scan().to_arrow()
        assert ours.num_rows == 30
        assert_same(java.columns, java.rows, json_rows(ours))

    java_reads_the_same()
    peer.write("shop.t", some_rows(table, range(5, 15)))
    peer.call("compact", table="shop.t")
    java_reads_the_same()
