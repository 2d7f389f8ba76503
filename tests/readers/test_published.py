"""Other readers see the rows of Paimon tables through their published Iceberg metadata."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.readers.readers import Reader, rows_of

COLUMNS = [
    ("id", "BIGINT"),
    ("day", "DATE"),
    ("small", "TINYINT"),
    ("amount", "DECIMAL(20, 3)"),
    ("at", "TIMESTAMP(6)"),
    ("text", "STRING"),
    ("parts", "ARRAY<ROW<a INT, b STRING>>"),
]
PUBLISHED = {"metadata.iceberg.storage": "table-location"}


def some_rows(table: lake.Table, first: int) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "id": number,
            "day": dt.date(2024, 1, 1 + number % 3),
            "small": number,
            "at": dt.datetime(1969, 1, 1, 1, 2, 3, number),
            "text": None if number % 2 else f"row {number}",
            "parts": [{"a": number, "b": "x"}],
        }
        for number in range(first, first + 5)
    ]
    return pa.Table.from_pylist(rows, table.schema.arrow_schema())


def published(table: lake.Table) -> lake.IcebergTable:
    file = lake.publish_table(table).metadata_file
    assert file is not None
    found = lake.open_table(file)
    assert isinstance(found, lake.IcebergTable)
    return found


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_a_reader_sees_the_rows_of_a_published_table(tmp_path: Path, reader: Reader, keyed: bool):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    keys = ["day", "id"] if keyed else []
    options = {**PUBLISHED, **({"bucket": "2"} if keyed else {})}
    table = catalog.create_table(
        "shop.orders", COLUMNS, primary_key=keys, partition_by=["day"], options=options
    )
    table.write(some_rows(table, 0))
    table.write(some_rows(table, 3))
    table.compact(strategy="full")
    table = catalog.alter_table(
        "shop.orders",
        lake.update_column_type("small", "INT"),
        lake.rename_column("text", "note"),
        lake.drop_column("amount"),
        lake.add_column("amount", "BIGINT"),
    )
    table.write(table.scan().to_arrow().slice(0, 2))
    table.compact(strategy="full")
    assert reader.read(published(table)) == rows_of(table.scan().to_arrow())
