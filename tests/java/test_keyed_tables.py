"""Primary-key tables put together from our writers: Java reads, changes and compacts them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.bucketing import row_hashes
from lakeformat.paimon.index.hash_index import encode_hash_index
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from tests.conformance.format_checklist.keyed_table import KeyedTable
from tests.interop.test_checklist_round_trip import write_keyed
from tests.java.peer_process import JavaPeer
from tests.java.samples import FORMATS, samples_of
from tests.java.wire import assert_same, json_rows


def location(catalog: lake.Catalog, name: str) -> str:
    return f"{catalog.location.removeprefix('file://')}/shop.db/{name}"


def assert_java_reads(peer: JavaPeer, catalog: lake.Catalog, name: str, count: int) -> None:
    """Return our rows, which the tests of the checklist have checked."""
    java = peer.read(f"shop.{name}")
    ours = catalog.table(f"shop.{name}").scan().to_arrow()
    assert_same(java.columns, java.rows, json_rows(ours))
    assert len(java.rows) == count


@pytest.mark.parametrize("file_format", FORMATS)
def test_partitions_buckets_and_row_kinds_are_merged_and_compacted(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str
):
    left = len(write_keyed(catalog, "keyed", file_format))
    assert_java_reads(peer, catalog, "keyed", left)
    schema = catalog.table("shop.keyed").schema.arrow_schema()
    changed = catalog.table("shop.keyed").scan().to_arrow().slice(0, 5).cast(schema)
    peer.write("shop.keyed", changed, kinds=["-D"] * 5)
    assert_java_reads(peer, catalog, "keyed", left - 5)
    peer.call("compact", table="shop.keyed")
    assert_java_reads(peer, catalog, "keyed", left - 5)
    assert {file["level"] for file in peer.call("live_files", table="shop.keyed")} == {5}


@pytest.mark.parametrize("file_format", FORMATS)
def test_keys_of_every_comparable_type_are_in_java_s_order_and_buckets(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str
):
    # No column that is nested, without an order, or a known gap of the tests of one column each.
    unfit = ("ARRAY", "MAP", "ROW", "VARIANT", "FLOAT", "DOUBLE", "CHAR(5)", "TIMESTAMP(9)", "BOOL")
    for number, column in enumerate(samples_of(file_format)):
        if column.type.startswith(unfit):
            continue
        name = f"keyed{number}"
        table = KeyedTable(
            location(catalog, name),
            [("k", f"{column.type} NOT NULL"), ("v", "INT")],
            ["k"],
            {"bucket": "1", "file.format": file_format},
        )
        kind = table.schema.arrow_schema().field("k").type
        values = pa.array(column.values, kind).unique()  # a decimal 0 has no sign
        rows = [{"k": value, "v": n} for n, value in enumerate(values)]
        table.commit(table.write(rows))
        again = pa.Table.from_arrays(
            [values, pa.array(range(100, 100 + len(values)), pa.int32())],
            schema=table.schema.arrow_schema(),
        )
        peer.write(f"shop.{name}", again)
        assert_java_reads(peer, catalog, name, len(values))
        assert min(peer.read(f"shop.{name}").column("v")) == 100


def test_a_dynamic_bucket_table_with_our_hash_files_is_read_and_compacted(
    catalog: lake.Catalog, peer: JavaPeer
):
    columns = (("k", "BIGINT NOT NULL"), ("v", "STRING"))
    table = KeyedTable(location(catalog, "dynamic"), columns, ["k"], {"bucket": "-1"})
    entries: list[Any] = []
    indexes = []
    for bucket, keys in enumerate((range(5), range(5, 9))):
        entries += table.write([{"k": k, "v": "ours"} for k in keys], bucket=bucket)
        hashes = row_hashes([pa.array(keys, pa.int64())], [table.schema.fields[0].type])
        content = encode_hash_index(hashes)
        with table.storage.open_output(table.layout.index_file(f"index-u-{bucket}")) as stream:
            stream.write(content)
        indexes.append(
            IndexManifestEntry(
                partition=EMPTY_ROW,
                bucket=bucket,
                index_type=HASH,
                file_name=f"index-u-{bucket}",
                file_size=len(content),
                row_count=len(keys),
            )
        )
    table.commit(entries, indexes=indexes)
    assert_java_reads(peer, catalog, "dynamic", 9)
    schema = table.schema.arrow_schema()
    changed = pa.table({"k": [8, 0, 9], "v": ["theirs"] * 3}, schema=schema)
    peer.write("shop.dynamic", changed, buckets=[1, 0, 1])
    assert_java_reads(peer, catalog, "dynamic", 10)
    peer.call("compact", table="shop.dynamic")
    assert_java_reads(peer, catalog, "dynamic", 10)
    java = peer.read("shop.dynamic$table_indexes")
    assert sorted(java.column("row_count")) == [5, 5]
