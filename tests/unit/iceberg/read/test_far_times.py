"""Partitions of dates and times that Python's own dates and times cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.write.made_tables import made_table

YEAR = 31_556_952 * 10**6
"""The length of a year in microseconds."""
TIMES = pytest.mark.parametrize(
    ("kind", "transform", "far"),
    [
        ("timestamp", "identity", 8_100 * YEAR),
        ("timestamp", "identity", -3_000 * YEAR),
        ("timestamp", "day", 8_100 * YEAR),
        ("timestamp", "hour", 8_100 * YEAR),
        ("timestamp_ns", "identity", 1_700_000_000_123_456_789),
    ],
)


def rows(kind: str, *pairs: tuple[int, int]) -> pa.Table:
    unit = "ns" if kind.endswith("ns") else "us"
    times = pa.array([time for _, time in pairs], pa.int64()).cast(pa.timestamp(unit))
    return pa.table({"id": [number for number, _ in pairs], "ts": times})


def table_of(storage, kind: str, transform: str, far: int) -> IcebergTable:
    """Rows 1 and 3 at a far time, in two files, and row 2 in 1970."""
    columns = {"id": "long", "ts": kind}
    table = IcebergTable(made_table(storage, 3, columns=columns, partition={"ts": transform}))
    table.write(rows(kind, (1, far), (2, 0)))
    table.write(rows(kind, (3, far)))
    return table


def ids_of(table: IcebergTable) -> list[int]:
    """The ids of all rows; the times themselves cannot be converted to Python's."""
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


@TIMES
def test_rows_are_read_with_equality_deletes(storage, kind, transform, far):
    table = table_of(storage, kind, transform, far)
    delete_by_key(table._handle, 1, 2, partition={"ts_part": None})
    assert table.scan(["id"]).count() == 3  # no row is in the partition of the delete


@TIMES
def test_rows_are_changed_compacted_and_replaced(storage, kind, transform, far):
    table = table_of(storage, kind, transform, far)
    assert table.compact(rewrite_all=True).reason.startswith("3 files of ")
    assert table.update("id = 3", {"id": 4}).rows == 1
    assert table.changes(0, columns=["id"]).to_arrow().num_rows
    assert ids_of(table) == [1, 2, 4]
    table.write(rows(kind, (5, far)), overwrite="dynamic")
    assert ids_of(table) == [2, 5]


def test_partitions_that_differ_by_nanoseconds_are_replaced_apart(storage):
    table = table_of(storage, "timestamp_ns", "identity", 1)
    table.write(rows("timestamp_ns", (4, 2)), overwrite="dynamic")
    assert ids_of(table) == [1, 2, 3, 4]


def test_a_condition_beyond_the_last_hour_finds_no_row(storage):
    table = table_of(storage, "timestamp", "hour", 8_100 * YEAR)
    late = pa.scalar(250_000 * YEAR, pa.timestamp("us"))
    assert table.scan(["id"], where=lake.col("ts") == late).count() == 0
    assert table.scan(["id"], where=lake.col("ts") < late).count() == 3
