"""Data files of all three formats, with statistics, between pypaimon and us in both directions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.every_type import COLUMNS, Column
from tests.interop.peer import Peer

FORMATS = ["parquet", "orc", "avro"]
in_every_format = pytest.mark.parametrize("file_format", FORMATS)
SECONDS_IN_NANOS = 9_000_000_000
"""ORC files are read as nanoseconds, which reach about so far from 1970."""

# What the format has no place for.
REFUSED = {
    "parquet": (),
    "orc": ("BINARY(", "VARBINARY(", "VARIANT"),
    "avro": ("TIMESTAMP(9)", "VARIANT"),
}


def columns_for(file_format: str) -> list[Column]:
    refused = REFUSED[file_format]
    return [column for column in COLUMNS if not any(text in column.type for text in refused)]


def within_reach(column: Column, file_format: str) -> Column:
    """The values an ORC file may have; before 1970 it has whole milliseconds only."""
    if file_format == "orc" and column.type == "ARRAY<ARRAY<TIMESTAMP(6)>>":
        return Column(column.type, ([], [None], [[], [None, -1_000]]))
    if file_format != "orc" or not column.type.startswith("TIMESTAMP"):
        return column
    digits = {"0": 3, "3": 3, "4": 6, "6": 6, "9": 9}[column.type[10]]
    near = [value for value in column.values if abs(value) < SECONDS_IN_NANOS * 10**digits]
    milli = 10 ** (digits - 3)
    return Column(
        column.type, tuple(value if value > 0 else value // milli * milli for value in near)
    )


@in_every_format
def test_pypaimon_reads_every_type_of_our_files(
    catalog: lake.Catalog, peer: Peer, file_format: str
):
    columns = [within_reach(column, file_format) for column in columns_for(file_format)]
    schema = [(column.name, column.type) for column in columns]
    table = catalog.create_table("shop.wide", schema, options={"file.format": file_format})
    rows = values_of(columns, table.schema.arrow_schema())
    table.write(rows)
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(rows))
    assert_same_rows(rows_of(peer.read("shop.wide")), rows_of(rows))


def values_of(columns: list[Column], schema: pa.Schema) -> pa.Table:
    """Every value of every column, and a last row of nulls."""
    count = max(len(column.values) for column in columns) + 1
    padded = [[*column.values, *[None] * (count - len(column.values))] for column in columns]
    arrays = [pa.array(values, kind) for values, kind in zip(padded, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


@in_every_format
def test_we_read_every_type_that_pypaimon_writes(
    catalog: lake.Catalog, peer: Peer, file_format: str
):
    rows = pa.table(
        {
            "b": pa.array([True, None]),
            "i": pa.array([-1, None], pa.int8()),
            "l": pa.array([2**63 - 1, None]),
            "f": pa.array([1.5, None], pa.float32()),
            "s": pa.array(["é中", None]),
            "y": pa.array([b"\xff\0", None]),
            "d": pa.array([Decimal("-0.01"), None], pa.decimal128(38, 2)),
            "t": pa.array([-1, None], pa.date32()),
            "ts": pa.array([-1, None], pa.timestamp("ms")),
            "us": pa.array([-1, None], pa.timestamp("us", tz="UTC")),
            "a": pa.array([[1, 2], None], pa.list_(pa.int32())),
            "r": pa.array(
                [{"x": 1, "y": None}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])
            ),
        }
    )
    peer.create_table("shop.theirs", rows.schema, {"file.format": file_format})
    peer.write("shop.theirs", rows)
    assert_same_rows(rows_of(catalog.table("shop.theirs").scan().to_arrow()), rows_of(rows))


# Rows come in files of one each, so that whatever is skipped wrongly is missing.
KEYS = ["", "a", "a" * 16, "a" * 17, "a" * 16 + "b", "中文" * 12, "\U0010ffff" * 20, "z"]


@in_every_format
@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts", "none"])
def test_pypaimon_finds_each_row_through_our_statistics(
    catalog: lake.Catalog, peer: Peer, file_format: str, mode: str
):
    table = catalog.create_table(
        "shop.t",
        [("s", "STRING"), ("n", "BIGINT"), ("x", "DOUBLE"), ("d", "DECIMAL(20, 2)")],
        options={"file.format": file_format, "metadata.stats-mode": mode},
    )
    rows: list[dict[str, Any]] = [
        {"s": key, "n": number - 3, "x": number - 3.5, "d": Decimal(number).scaleb(-2)}
        for number, key in enumerate(KEYS)
    ]
    for row in rows:
        table.write(pa.Table.from_pylist([row], schema=table.schema.arrow_schema()))
    for row in rows:
        for name in ("s", "n", "x"):
            found = peer.read("shop.t", where_equal=(name, row[name]))
            assert_same_rows(rows_of(found), [row])


@in_every_format
def test_pypaimon_skips_files_by_our_statistics(
    catalog: lake.Catalog, peer: Peer, file_format: str
):
    table = catalog.create_table(
        "shop.t", [("n", "BIGINT"), ("s", "STRING")], options={"file.format": file_format}
    )
    for number in range(3):
        rows = pa.table({"n": [number, None], "s": [f"key {number}", None]})
        table.write(rows)
    for path in Path(table.location).rglob("data-*"):
        path.unlink()  # a file that is skipped need not be there
    assert rows_of(peer.read("shop.t", where_equal=("n", 7))) == []
    assert rows_of(peer.read("shop.t", where_equal=("s", "nothing"))) == []
