"""The released Java Paimon reads the append tables written here, whatever they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.interop.every_type import Column
from tests.java.peer_process import JavaPeer
from tests.java.samples import COMPRESSIONS, FORMATS, SAMPLES, rows_with
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
ROWS = pa.table({"id": [1, 2, 3], "note": ["one", "", None]})

NANOSECONDS_IN_PARQUET = (
    "we write TIMESTAMP(7) to (9) of Parquet as 64-bit nanoseconds; Java, which writes INT96, "
    "takes them for milliseconds"
)
NEGATIVE_FRACTIONS_IN_ORC = (
    "Arrow rounds the seconds of an ORC file towards 1970 and leaves a negative fraction; Java "
    "refuses one that is no whole millisecond"
)
NO_NONE_IN_AVRO = "Java calls it 'null' in Avro files and cannot append to a table that says 'none'"

in_every_format = pytest.mark.parametrize("file_format", FORMATS)


def gap_of(file_format: str, column: Column) -> str:
    """Why Java does not read this column of ours; nothing where it does."""
    nanoseconds = column.type.startswith("TIMESTAMP(9)")
    return NANOSECONDS_IN_PARQUET if nanoseconds and file_format == "parquet" else ""


@pytest.mark.parametrize(
    ("file_format", "column"),
    [
        pytest.param(
            file_format,
            column,
            id=f"{file_format}-{column.type}",
            marks=[pytest.mark.xfail(reason=gap)] if (gap := gap_of(file_format, column)) else [],
        )
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


@pytest.mark.xfail(reason=NEGATIVE_FRACTIONS_IN_ORC)
@pytest.mark.parametrize("digits", [4, 6, 9])
def test_a_fraction_of_a_second_before_1970_arrives_from_an_orc_file(
    catalog: lake.Catalog, peer: JavaPeer, digits: int
):
    options = {"file.format": "orc"}
    table = catalog.create_table("shop.t", [("at", f"TIMESTAMP({digits})")], options=options)
    schema = table.schema.arrow_schema()
    nanos = -1_000_100_000
    moments = pa.array([nanos], pa.timestamp("ns")).cast(schema.types[0])
    table.write(pa.Table.from_arrays([moments], schema=schema))
    assert peer.read("shop.t").rows == [[nanos]]


def test_multisets_arrive_with_their_counts(catalog: lake.Catalog, peer: JavaPeer):
    table = catalog.create_table("shop.bags", [("bag", "MULTISET<STRING>")])
    schema = table.schema.arrow_schema()
    table.write(
        pa.Table.from_arrays([pa.array([[("a", 2)], None], schema.types[0])], schema=schema)
    )
    assert_same(["bag"], peer.read("shop.bags").rows, [[[["a", 2]]], [None]])


@pytest.mark.parametrize(
    ("file_format", "compression"),
    [
        pytest.param(
            file_format,
            codec,
            marks=[pytest.mark.xfail(reason=NO_NONE_IN_AVRO)]
            if (file_format, codec) == ("avro", "none")
            else [],
        )
        for file_format in FORMATS
        for codec in COMPRESSIONS[file_format]
    ],
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
