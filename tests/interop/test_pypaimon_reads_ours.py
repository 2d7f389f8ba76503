"""pypaimon reads the append tables written here, for all types and formats."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.every_type import all_values, column_list
from tests.interop.peer import Peer
from tests.json_process import PeerError

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
ROWS = pa.table({"id": [1, 2, 3], "note": ["one", "", None]})

# How Parquet and Avro name what the table options name.
FILE_CODECS = {
    "zstd": "ZSTD",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "gzip": "GZIP",
}
MANIFEST_CODECS = {"zstd": "zstandard", "snappy": "snappy", "deflate": "deflate", "null": "null"}


def codec_of_data_file(path: Path) -> str:
    return str(pq.read_metadata(path).row_group(0).column(0).compression)


def codec_of_manifest(path: Path) -> str:
    with path.open("rb") as stream:
        return str(fastavro.reader(stream).codec)


def test_every_type_arrives_with_its_nulls_and_extremes(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table("shop.wide", column_list())
    rows = all_values(table.schema.arrow_schema())
    table.write(rows)
    assert_same_rows(rows_of(peer.read("shop.wide")), rows_of(rows))
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(rows))


@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "not null"])
def test_columns_come_with_their_names_order_and_nullability(
    catalog: lake.Catalog, peer: Peer, nullable: bool
):
    names = ["UPPER", "with space", "größe", "名", "a.b", "_leading", "select"]
    schema = pa.schema([pa.field(name, pa.int32(), nullable) for name in names])
    rows = pa.table([pa.array([number]) for number in range(len(names))], names=names)
    catalog.create_table("shop.named", schema).write(rows)
    arrived = peer.read("shop.named")
    assert arrived.column_names == names
    assert [field.nullable for field in arrived.schema] == [nullable] * len(names)
    assert_same_rows(rows_of(arrived), rows_of(rows))


@pytest.mark.parametrize("compression", FILE_CODECS)
def test_both_write_data_files_in_every_compression_and_read_them(
    catalog: lake.Catalog, peer: Peer, tmp_path: Path, compression: str
):
    options = {"file.compression": compression}
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    table.write(ROWS)
    peer.write("shop.orders", ROWS.cast(table.schema.arrow_schema()))
    codecs = {codec_of_data_file(path) for path in tmp_path.rglob("*.parquet")}
    assert codecs == {FILE_CODECS[compression]}
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(ROWS) * 2)
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(ROWS) * 2)


@pytest.mark.parametrize("compression", MANIFEST_CODECS)
def test_both_write_manifests_in_every_compression_and_read_them(
    catalog: lake.Catalog, peer: Peer, tmp_path: Path, compression: str
):
    options = {"manifest.compression": compression}
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    table.write(ROWS)
    peer.write("shop.orders", ROWS.cast(table.schema.arrow_schema()))
    codecs = {codec_of_manifest(path) for path in tmp_path.rglob("manifest-*")}
    assert codecs == {MANIFEST_CODECS[compression]}
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(ROWS) * 2)
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(ROWS) * 2)


def test_many_files_of_several_commits_are_read_in_the_order_written(
    catalog: lake.Catalog, peer: Peer
):
    table = catalog.create_table("shop.big", [("n", "INT")], options={"target-file-size": "64 kb"})
    ranges = [range(0, 300_000), range(300_000, 300_001), range(300_001, 600_000)]
    reports = [table.write(pa.table({"n": pa.array(part, pa.int32())})) for part in ranges]
    assert [report.files for report in reports] == [3, 1, 3]
    assert peer.read("shop.big")["n"].to_pylist() == list(range(600_000))


def test_files_prepared_by_several_writers_arrive_in_one_snapshot(
    catalog: lake.Catalog, peer: Peer
):
    table = catalog.create_table("shop.orders", COLUMNS)
    messages = []
    for _ in range(3):
        with table.new_writer() as writer:
            writer.write(ROWS)
            messages += writer.prepare()
    table.commit(messages)
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(ROWS) * 3)
    assert peer.describe("shop.orders")["latest_snapshot"] == 1


def test_a_filter_finds_rows_in_files_without_statistics(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(ROWS)
    table.write(ROWS)
    assert_same_rows(
        rows_of(peer.read("shop.orders", where_equal=("id", 2))), [{"id": 2, "note": ""}] * 2
    )


def test_a_table_nobody_has_written_to_has_its_columns_and_no_rows(
    catalog: lake.Catalog, peer: Peer
):
    catalog.create_table("shop.orders", COLUMNS)
    assert peer.read("shop.orders").num_rows == 0
    assert peer.describe("shop.orders")["columns"] == [
        ["id", "BIGINT NOT NULL"],
        ["note", "STRING"],
    ]


def test_comment_and_options_of_a_table_are_understood(catalog: lake.Catalog, peer: Peer):
    options = {"file.compression": "lz4", "target-file-size": "64 mb"}
    catalog.create_table("shop.orders", COLUMNS, options=options, comment="what was sold")
    found = peer.describe("shop.orders")
    assert (found["comment"], found["options"]) == ("what was sold", options)


def test_a_catalog_shows_the_same_tables_to_both(catalog: lake.Catalog, peer: Peer):
    catalog.create_table("shop.orders", COLUMNS)
    peer.create_table("shop.returns", ROWS.schema)
    assert catalog.list_tables("shop") == peer.list_tables("shop") == ["orders", "returns"]


def test_pypaimon_cannot_read_multisets_yet(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table("shop.bags", [("bag", "MULTISET<STRING>")])
    schema = table.schema.arrow_schema()
    bags = pa.array([[("a", 2)], None], schema.field("bag").type)
    table.write(pa.Table.from_arrays([bags], schema=schema))
    with pytest.raises(PeerError, match="Unsupported data type: MULTISET<STRING>"):
        peer.read("shop.bags")
