"""Partitions of dates and times that Python's own dates and times cannot hold."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.write.made_tables import edited, made_table

NANOS = "timestamp_ns"
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


def promoted(storage, day: date, to: str = NANOS, **table) -> IcebergTable:
    """Files with dates; then another engine makes the type of the column a timestamp type."""
    handle = made_table(storage, 3, columns={"id": "long", "dt": "date"}, **table)
    IcebergTable(handle).write(pa.table({"id": [1, 2], "dt": [day, date(2020, 1, 1)]}))
    [old] = metadata_to_json(handle.load().metadata)["schemas"]
    new = old | {"schema-id": 1, "fields": [old["fields"][0], old["fields"][1] | {"type": to}]}
    return edited(handle, schemas=[old, new], current_schema_id=1)


@pytest.mark.parametrize("day", [date(1600, 1, 1), date(2300, 1, 1), date(9999, 12, 31)])
@pytest.mark.parametrize("where", ["dt > '2000-01-01'", "dt = '2020-01-01'", "dt != '2020-01-01'"])
def test_a_date_beyond_the_range_of_nanoseconds_is_neither_skipped_nor_deleted(storage, day, where):
    """The bounds of the file do not fit the promoted type, so they are unknown."""
    table = promoted(storage, day)
    far = r"column 'dt': it was promoted from date to timestamp_ns, and a date .* is beyond"
    with pytest.raises(UnsupportedError, match=far):
        table.scan(["id"], where=where).to_arrow()
    with pytest.raises(UnsupportedError, match=far):
        table.delete(where)
    assert ids_of(table) == [1, 2]


@pytest.mark.parametrize("to", ["timestamp", NANOS])
def test_dates_in_the_partition_of_a_promoted_column_are_refused(storage, to):
    """A day would become a microsecond or nanosecond after 1970."""
    table = promoted(storage, date(2021, 1, 1), to, partition={"dt": "identity"})
    wrong = rf"field 'dt_part', but its column 'dt' was promoted from date to {to}, .* Rewrite"
    for work in (
        lambda: table.scan(["id"], where="dt = '2020-01-01'").to_arrow(),
        lambda: table.delete("dt < '2000-01-01'"),
        lambda: table.compact(rewrite_all=True),
        lambda: table.system_table("partitions").scan().to_arrow(),
    ):
        with pytest.raises(UnsupportedError, match=wrong):
            work()


@pytest.mark.parametrize("transform", ["day", "month", "year", "void"])
def test_a_promoted_column_is_read_with_other_partitions(storage, transform):
    table = promoted(storage, date(2021, 1, 1), partition={"dt": transform})
    assert table.scan(["id"], where="dt = '2020-01-01'").to_arrow()["id"].to_pylist() == [2]
    assert table.delete("dt < '2000-01-01'").rows == 0


def test_a_condition_beyond_the_last_hour_finds_no_row(storage):
    table = table_of(storage, "timestamp", "hour", 8_100 * YEAR)
    late = pa.scalar(250_000 * YEAR, pa.timestamp("us"))
    assert table.scan(["id"], where=lake.col("ts") == late).count() == 0
    assert table.scan(["id"], where=lake.col("ts") < late).count() == 3
