"""A sum of short decimals that outgrew its precision: both sides keep it in Parquet files.

Java reads null out of Avro and ORC files, and writes null to ORC; ours keeps the value there too.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.keyed_rows import listed

COLUMNS = [("k", "INT NOT NULL"), ("v", "DECIMAL(5, 2)")]


def options(file_format: str) -> dict[str, str]:
    return {
        "bucket": "1",
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "sum",
        "file.format": file_format,
    }


def rows(table: lake.Table, *values: str) -> pa.Table:
    given = [{"k": 1, "v": Decimal(value)} for value in values]
    return pa.Table.from_pylist(given, table.schema.arrow_schema())


def test_java_reads_what_we_compacted(catalog: lake.Catalog, peer: JavaPeer):
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["k"], options=options("parquet"))
    table.write(rows(table, "999.99"))
    table.write(rows(table, "0.01"))
    table.compact()
    assert peer.read("shop.t").rows == [[1, "1000.00"]]


def test_we_read_what_java_merged(catalog: lake.Catalog, peer: JavaPeer):
    peer.create_table("shop.t", COLUMNS, options("parquet"), primary_keys=["k"])
    table = catalog.table("shop.t")
    peer.write("shop.t", rows(table, "999.99", "0.01"))
    assert listed(table.scan(where="v > 999.99")) == [(1, Decimal("1000.00"))]
    table.compact()
    assert peer.read("shop.t").rows == [[1, "1000.00"]]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_in_other_files_java_loses_it_and_we_do_not(
    file_format: str, catalog: lake.Catalog, peer: JavaPeer
):
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["k"], options=options(file_format))
    table.write(rows(table, "999.99"))
    table.write(rows(table, "0.01"))
    assert peer.read("shop.t").rows == [[1, "1000.00"]]
    table.compact()
    assert peer.read("shop.t").rows == [[1, None]]
    assert listed(table.scan()) == [(1, Decimal("1000.00"))]


def test_what_java_wrote_to_avro_is_there_although_java_reads_null(
    catalog: lake.Catalog, peer: JavaPeer
):
    peer.create_table("shop.t", COLUMNS, options("avro"), primary_keys=["k"])
    table = catalog.table("shop.t")
    peer.write("shop.t", rows(table, "999.99", "0.01"))
    assert peer.read("shop.t").rows == [[1, None]]
    assert listed(table.scan()) == [(1, Decimal("1000.00"))]
