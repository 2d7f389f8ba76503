"""The released Java Paimon reads append tables of every type written here."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from tests.interop.every_type import Column
from tests.java.peer_process import JavaPeer
from tests.java.samples import COMPRESSIONS, FORMATS, SAMPLES, rows_with
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
ROWS = pa.table({"id": [1, 2, 3], "note": ["one", "", None]})

in_every_format = pytest.mark.parametrize("file_format", FORMATS)


@pytest.mark.parametrize(
    ("file_format", "column"),
    [
        pytest.param(file_format, column, id=f"{file_format}-{column.type}")
        for file_format, column in SAMPLES
    ],
)
def test_every_type_arrives_with_its_null_and_extremes(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str, column: Column
):
    options = {"file.format": file_format}
    table = catalog.create_table("shop.t", [(column.name, column.type)], options=options)
    rows = rows_with(column, table.schema.arrow_schema())
    table.write(rows)
    found = peer.read("shop.t")
    assert_same(found.columns, found.rows, json_rows(rows))


@in_every_format
@pytest.mark.parametrize("digits", [5, 18, 19, 38])
def test_decimals_that_repeat_are_found_by_their_value(
    catalog: lake.Catalog, peer: JavaPeer, digits: int, file_format: str
):
    """As a condition of Java's looks into the dictionaries of a file."""
    columns = [("price", f"DECIMAL({digits}, 2)")]
    table = catalog.create_table("shop.t", columns, options={"file.format": file_format})
    schema = table.schema.arrow_schema()
    prices = [Decimal("1.00"), Decimal("-0.05"), None]
    table.write(pa.Table.from_arrays([pa.array(prices * 100, schema.types[0])], schema=schema))
    for price in ("1.00", "-0.05"):
        assert peer.read("shop.t", where=("price", "=", price)).rows == [[price]] * 100
    assert peer.read("shop.t", where=("price", "=", "2.00")).rows == []


# Before 1970, Arrow counts the nanoseconds in an ORC file from the later second, down to here.
WHOLE_MILLIS = [-1_000_000, -999_000_000, -1_000_000_000, -1_001_000_000, -(10**18) - 10**6]
FRACTIONS = [-100_000, -999_900_000, -1_000_100_000, -(10**18) - 10**5]


@pytest.mark.parametrize("digits", [4, 6, 9])
def test_times_before_1970_arrive_from_an_orc_file_or_are_refused(
    catalog: lake.Catalog, peer: JavaPeer, digits: int
):
    options = {"file.format": "orc"}
    columns = [("at", f"ARRAY<TIMESTAMP({digits})>")]
    table = catalog.create_table("shop.t", columns, options=options)
    schema = table.schema.arrow_schema()

    def write(nanos: int) -> None:
        moments = pa.array([[nanos, None]], pa.list_(pa.timestamp("ns"))).cast(schema.types[0])
        table.write(pa.Table.from_arrays([moments], schema=schema))

    for nanos in WHOLE_MILLIS:
        write(nanos)
    assert peer.read("shop.t").column("at") == [[nanos, None] for nanos in sorted(WHOLE_MILLIS)]
    for nanos in FRACTIONS:
        with pytest.raises(lake.InvalidRequestError, match="'at' has a timestamp before 1970"):
            write(nanos)


FAR_NANOS = 9_223_372_036 * 10**9
NANOS = [0, 1, -1, 1_700_000_000_123_456_789, -1_700_000_000_123_456_789, FAR_NANOS, -FAR_NANOS]


def test_timestamps_of_every_precision_share_a_parquet_file(catalog: lake.Catalog, peer: JavaPeer):
    """Each with the physical type that Java's own files have."""
    kinds = [f"TIMESTAMP({digits})" for digits in range(10)]
    kinds += [f"{kind} WITH LOCAL TIME ZONE" for kind in kinds]
    columns = [(f"c{n}", kind) for n, kind in enumerate(kinds)]
    columns += [
        ("nested", f"ROW<{', '.join(f'f{n} {kind} NOT NULL' for n, kind in enumerate(kinds))}>"),
        ("list", "ARRAY<ARRAY<TIMESTAMP(7) NOT NULL>>"),
        ("pairs", "MAP<TIMESTAMP(9), ROW<fine TIMESTAMP(9), coarse TIMESTAMP(3)>>"),
        ("wide", "DECIMAL(28, 0)"),
    ]
    for name in ("ours", "java"):
        catalog.create_table(f"shop.{name}", columns)
    table = catalog.table("shop.ours")
    schema = table.schema.arrow_schema()

    def cut(nanos: int, digits: int) -> int:
        unit = 10**6 if digits <= 3 else 10**3 if digits <= 6 else 1
        step = 10 ** (9 - digits)
        return nanos // step * step // unit

    rows = [
        {
            **{f"c{n}": cut(nanos, n % 10) for n in range(len(kinds))},
            "nested": {f"f{n}": cut(nanos, n % 10) for n in range(len(kinds))},
            "list": [[cut(nanos, 7)], None, []],
            "pairs": [(nanos, {"fine": nanos, "coarse": 1}), (nanos ^ 1, None)],
        }
        for nanos in NANOS
    ]
    written = pa.Table.from_pylist([*rows, {}], schema=schema)
    table.write(written)
    peer.write("shop.java", written)
    assert physical_types(table) == physical_types(catalog.table("shop.java"))
    for name in ("ours", "java"):
        assert_same(schema.names, peer.read(f"shop.{name}").rows, json_rows(written))
        found = catalog.table(f"shop.{name}").scan().to_arrow()
        assert_same(schema.names, json_rows(found), json_rows(written))


def physical_types(table: lake.Table) -> dict[str, str]:
    [path] = Path(table.location.removeprefix("file://")).rglob("data-*.parquet")
    schema = pq.ParquetFile(path).schema
    return {
        schema.column(n).path.replace(".array", ".element"): schema.column(n).physical_type
        for n in range(len(schema))
    }


@pytest.mark.parametrize("digits", [3, 6, 9])
def test_rows_are_found_by_a_timestamp_beside_nanoseconds(
    catalog: lake.Catalog, peer: JavaPeer, digits: int
):
    columns = [("at", f"TIMESTAMP({digits})"), ("fine", "TIMESTAMP(9)")]
    table = catalog.create_table("shop.t", columns)
    schema = table.schema.arrow_schema()
    moments = pa.array([*range(-(10**9), 10**9, 10**8), None], pa.timestamp("ns"))
    for rows in (pa.table([moments.cast(kind) for kind in schema.types], schema=schema),) * 2:
        table.write(rows)
    nanos = 3 * 10**8
    assert peer.read("shop.t", where=("at", "=", nanos)).rows == [[nanos, nanos]] * 2
    later = peer.read("shop.t", where=("at", ">=", nanos)).column("at")
    assert later == sorted([*range(nanos, 10**9, 10**8)] * 2)
    assert peer.read("shop.t", where=("at", "is null", None)).rows == [[None, None]] * 2


def test_multisets_arrive_with_their_counts(catalog: lake.Catalog, peer: JavaPeer):
    table = catalog.create_table("shop.bags", [("bag", "MULTISET<STRING>")])
    schema = table.schema.arrow_schema()
    table.write(
        pa.Table.from_arrays([pa.array([[("a", 2)], None], schema.types[0])], schema=schema)
    )
    assert_same(["bag"], peer.read("shop.bags").rows, [[[["a", 2]]], [None]])


@pytest.mark.parametrize(
    ("file_format", "compression"),
    [(file_format, codec) for file_format in FORMATS for codec in COMPRESSIONS[file_format]],
)
def test_both_write_data_files_in_every_compression_and_read_them(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str, compression: str
):
    options = {"file.format": file_format, "file.compression": compression}
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    table.write(ROWS)
    peer.write("shop.orders", ROWS)
    expected = json_rows(ROWS) * 2
    assert_same(["id", "note"], peer.read("shop.orders").rows, expected)
    assert_same(["id", "note"], json_rows(table.scan().to_arrow()), expected)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "deflate", "null"])
def test_both_write_manifests_in_every_compression_and_read_them(
    catalog: lake.Catalog, peer: JavaPeer, compression: str
):
    options = {"manifest.compression": compression}
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    table.write(ROWS)
    peer.write("shop.orders", ROWS)
    table.write(ROWS)
    assert_same(["id", "note"], peer.read("shop.orders").rows, json_rows(ROWS) * 3)
    assert table.scan().to_arrow().num_rows == 9


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("manifest_format", ["orc", "parquet"])
def test_both_write_manifests_in_other_formats_and_read_them(
    catalog: lake.Catalog, peer: JavaPeer, manifest_format: str, compression: str
):
    options = {"bucket": "1", "manifest.format": manifest_format}
    options["manifest.compression"] = compression
    columns = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
    table = catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    table.write(ROWS)
    peer.write("shop.orders", ROWS.slice(0, 2))
    table.write(ROWS)
    table.compact()
    assert_same(["id", "note"], peer.read("shop.orders").rows, json_rows(ROWS))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()


@in_every_format
@pytest.mark.parametrize("dense", ["true", "false"])
@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts", "none"])
def test_each_row_is_found_through_our_statistics(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str, mode: str, dense: str
):
    options = {
        "file.format": file_format,
        "metadata.stats-mode": mode,
        "metadata.stats-dense-store": dense,
        "fields.note.stats-mode": "full",
    }
    columns = [("id", "BIGINT"), ("note", "STRING"), ("tags", "ARRAY<INT>")]
    table = catalog.create_table("shop.t", columns, options=options)
    notes = ["", "a" * 17, "中文" * 12, "\U0010ffff" * 20, None]
    # A file of one row each: what is skipped wrongly is missing.
    for number, note in enumerate(notes):
        row = {"id": [number], "note": [note], "tags": [[number]]}
        table.write(pa.table(row, schema=table.schema.arrow_schema()))
    for number, note in enumerate(notes):
        expected = [[number, note, [number]]]
        assert peer.read("shop.t", where=("id", "=", number)).rows == expected
        comparison = ("note", "is null", None) if note is None else ("note", "=", note)
        assert peer.read("shop.t", where=comparison).rows == expected


@in_every_format
def test_files_are_skipped_by_our_statistics(
    catalog: lake.Catalog, peer: JavaPeer, file_format: str
):
    options = {"file.format": file_format}
    columns = [("n", "BIGINT"), ("at", "TIMESTAMP(6)"), ("day", "DATE"), ("note", "STRING")]
    table = catalog.create_table("shop.t", columns, options=options)
    for number in range(3):
        row = {"n": [number], "at": [number], "day": [number], "note": [f"key {number}"]}
        arrays = [pa.array(row[f.name], f.type) for f in table.schema.arrow_schema()]
        table.write(pa.Table.from_arrays(arrays, schema=table.schema.arrow_schema()))
    for path in Path(table.location.removeprefix("file://")).rglob("data-*"):
        path.unlink()  # a file that is skipped need not be there
    beyond = [("n", ">=", 3), ("at", ">=", 3_000), ("day", "<", 0), ("note", "=", "key 7")]
    for where in beyond:
        assert peer.read("shop.t", where=where).rows == []


def test_a_table_nobody_has_written_to_has_its_columns(catalog: lake.Catalog, peer: JavaPeer):
    options = {"file.compression": "lz4", "target-file-size": "64 mb"}
    catalog.create_table("shop.orders", COLUMNS, options=options, comment="what was sold")
    found = peer.call("describe", table="shop.orders")
    assert found["columns"] == [[0, "id", "BIGINT NOT NULL"], [1, "note", "STRING"]]
    assert (found["comment"], found["options"]["file.compression"]) == ("what was sold", "lz4")
    assert found["snapshot"] is None
    assert peer.read("shop.orders").rows == []
    assert peer.call("list_tables", database="shop") == ["orders"]


def test_many_files_of_several_commits_arrive_whole(catalog: lake.Catalog, peer: JavaPeer):
    options = {"target-file-size": "64 kb", "manifest.merge-min-count": "2"}
    table = catalog.create_table("shop.big", [("n", "INT")], options=options)
    for start in range(0, 200_000, 50_000):
        table.write(pa.table({"n": pa.array(range(start, start + 50_000), pa.int32())}))
    assert peer.read("shop.big").column("n") == list(range(200_000))


def test_an_older_snapshot_and_an_altered_schema_are_understood(
    catalog: lake.Catalog, peer: JavaPeer
):
    before = catalog.create_table(
        "shop.orders", [("id", "INT"), ("old", "STRING"), ("gone", "INT")]
    )
    row = {"id": pa.array([1], pa.int32()), "old": ["one"], "gone": pa.array([9], pa.int32())}
    before.write(pa.table(row))
    after = catalog.alter_table(
        "shop.orders",
        lake.rename_column("old", "new"),
        lake.drop_column("gone"),
        lake.add_column("gone", "STRING"),
        lake.update_column_type("id", "BIGINT"),
    )
    after.write(pa.table({"id": [2], "new": ["two"], "gone": ["back"]}))
    found = peer.read("shop.orders")
    assert found.columns == ["id", "new", "gone"]
    assert sorted(found.rows) == [[1, "one", None], [2, "two", "back"]]
    earlier = peer.read("shop.orders", options={"scan.snapshot-id": "1"})
    assert (earlier.columns, earlier.rows) == (["id", "old", "gone"], [[1, "one", 9]])
