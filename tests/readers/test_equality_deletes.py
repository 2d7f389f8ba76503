"""A table of Java with equality deletes: what readers make of it before and after its upkeep."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate
from tests.readers.known_limits import check_rows
from tests.readers.readers import Reader, rows_of
from tests.unit.iceberg.compact.made_deletes import delete_by_key


@pytest.fixture
def table(tmp_path: Path) -> lake.IcebergTable:
    golden = iceberg_table("equality_deletes")
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    opened = lake.open_table(str(tmp_path / "t"))
    assert isinstance(opened, lake.IcebergTable)
    return opened


def test_equality_deletes_of_java(table: lake.IcebergTable, reader: Reader):
    if gap := check_rows(reader, table, rows_of(table.scan().to_arrow())):
        pytest.xfail(gap)


def test_a_row_whose_key_is_null_is_not_deleted_with_another_key(tmp_path: Path, reader: Reader):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT"), ("v", "STRING")])
    table.write(pa.table({"id": pa.array([1, None, 2], pa.int64()), "v": ["a", "b", "c"]}))
    delete_by_key(table._handle, 1)
    if gap := check_rows(reader, table, [(2, "c"), (None, "b")]):
        pytest.xfail(gap)


@pytest.mark.parametrize("upkeep", ["compact deletes", "compact"])
def test_every_reader_has_the_rows_when_keys_are_positions(
    table: lake.IcebergTable, reader: Reader, upkeep: str
):
    expected = rows_of(table.scan().to_arrow())
    if upkeep == "compact":
        table.compact(strategy="full")
    else:
        table.compact_deletes(convert_equality=True)
    assert reader.read(table) == expected
