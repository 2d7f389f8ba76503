"""Other readers see the rows of Paimon tables through their published Iceberg metadata."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.publish.check.check import check_publication
from lakeformat.publish.check.readers import READERS
from tests.own_environment import own_python
from tests.readers.known_limits import check_rows
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
IN_WAREHOUSE = {"metadata.iceberg.storage": "hadoop-catalog"}
VERSION = "metadata.iceberg.format-version"


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
    found = lake.open_table(file, external_roots=[table.location])
    assert isinstance(found, lake.IcebergTable)
    return found


def new_table(folder: Path, columns: list[tuple[str, str]], **keys: Any) -> lake.Table:
    """A published table of a new warehouse."""
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("shop")
    options = {**PUBLISHED, **keys.pop("options")}
    return catalog.create_table("shop.orders", columns, options=options, **keys)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_a_reader_sees_the_rows_of_a_published_table(
    tmp_path: Path, reader: Reader, keyed: bool, version: str
):
    keys = ["day", "id"] if keyed else []
    options = {VERSION: version, **({"bucket": "2"} if keyed else {})}
    table = new_table(tmp_path, COLUMNS, primary_key=keys, partition_by=["day"], options=options)
    table.write(some_rows(table, 0))
    table.write(some_rows(table, 3))
    table.compact(strategy="full")
    table = lake.open_catalog(str(tmp_path)).alter_table(
        "shop.orders",
        lake.update_column_type("small", "INT"),
        lake.rename_column("text", "note"),
        lake.drop_column("amount"),
        lake.add_column("amount", "BIGINT"),
    )
    table.write(table.scan().to_arrow().slice(0, 2))
    table.compact(strategy="full")
    assert reader.read(published(table)) == rows_of(table.scan().to_arrow())


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_a_reader_sees_no_row_that_a_deletion_vector_deletes(
    tmp_path: Path, reader: Reader, keyed: bool, version: str
):
    keys = {"primary_key": ["day", "id"]} if keyed else {}
    options = {"deletion-vectors.enabled": "true", VERSION: version}
    if keyed:
        options["bucket"] = "1"
    table = new_table(tmp_path, COLUMNS, partition_by=["day"], options=options, **keys)
    first = pa.concat_tables([some_rows(table, number) for number in range(0, 100, 5)])
    table.write(first)
    if keyed:
        table.compact(strategy="full")
        table.write(first.slice(3, 4))
        table.compact(strategy="minor")
    else:
        table.delete("id in (1, 5, 8)")
        table.write(some_rows(table, 110))
        table.delete("id in (1, 7, 113)")
    shown = published(table)
    files = shown.system_table("files").scan().to_arrow()
    assert set(files["content"].to_pylist()) == {0, 1}
    if reason := check_rows(reader, shown, rows_of(table.scan().to_arrow())):
        pytest.xfail(reason)


def test_a_reader_sees_both_kinds_of_deletes_after_an_upgrade(tmp_path: Path, reader: Reader):
    options = {"deletion-vectors.enabled": "true"}
    table = new_table(tmp_path, COLUMNS, partition_by=["day"], options=options)
    table.write(pa.concat_tables([some_rows(table, 0), some_rows(table, 5)]))
    table.delete("id in (0, 1, 2)")
    catalog = lake.open_catalog(str(tmp_path))
    table = catalog.alter_table("shop.orders", lake.set_option(VERSION, "3"))
    table.delete("id = 3")
    if reason := check_rows(reader, published(table), rows_of(table.scan().to_arrow())):
        pytest.xfail(reason)


def test_a_reader_sees_nanoseconds_of_version_three(tmp_path: Path, reader: Reader):
    columns = [("id", "BIGINT"), ("at", "TIMESTAMP(9)")]
    table = new_table(tmp_path, columns, options={VERSION: "3"})
    at = pa.array([-1_000_000_001, None, 1_700_000_000_123_456_789], pa.timestamp("ns"))
    table.write(pa.table({"id": [1, 2, 3], "at": at}))
    if reason := check_rows(reader, published(table), rows_of(table.scan().to_arrow())):
        pytest.xfail(reason)


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_reader_sees_the_rows_of_a_table_published_in_the_warehouse(
    tmp_path: Path, reader: Reader, version: str
):
    """The metadata is in another directory than the data files."""
    options = {VERSION: version, "deletion-vectors.enabled": "true", **IN_WAREHOUSE}
    table = new_table(tmp_path, COLUMNS, partition_by=["day"], options=options)
    table.write(pa.concat_tables([some_rows(table, 0), some_rows(table, 5)]))
    shown = published(table)
    assert (tmp_path / "iceberg" / "shop" / "orders" / "metadata").is_dir()
    assert reader.read(shown) == rows_of(table.scan().to_arrow())
    table.delete("id in (1, 7)")
    if reason := check_rows(reader, published(table), rows_of(table.scan().to_arrow())):
        pytest.xfail(reason)


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_reader_sees_each_snapshot_of_a_history_that_is_published_from_scratch(
    tmp_path: Path, reader: Reader, version: str
):
    """Snapshot 2 has expired, and a tag keeps it; the newest one has other columns."""
    options = {VERSION: version, "iceberg.publish-mode": "async"}
    table = new_table(tmp_path, COLUMNS, partition_by=["day"], options=options)
    for first in range(0, 20, 5):
        table.write(some_rows(table, first))
    table.tags.create("two", snapshot=2)
    table.expire_snapshots(retain_max=2, retain_min=1)
    shutil.rmtree(tmp_path / "shop.db" / "orders" / "metadata")
    table = lake.open_catalog(str(tmp_path)).alter_table(
        "shop.orders", lake.rename_column("text", "note"), lake.drop_column("amount")
    )
    table.write(table.scan().to_arrow().slice(0, 2))
    shown = published(table)
    assert reader.read(shown) == rows_of(table.scan().to_arrow())
    if reader.name == "Iceberg-Rust":
        pytest.xfail("Iceberg-Rust in DataFusion reads the newest snapshot only")
    for snapshot in (3, 4, 5):
        expected = rows_of(table.scan(snapshot=snapshot).to_arrow())
        assert reader.read(shown, snapshot) == expected, snapshot
    assert reader.read(shown, 2) == rows_of(table.scan(tag="two").to_arrow())


@pytest.mark.parametrize("options", [{}, IN_WAREHOUSE], ids=["table", "warehouse"])
def test_the_check_of_a_publication_asks_clickhouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
):
    folder = tmp_path / "it's here"
    table = new_table(folder, [("id", "BIGINT"), ("text", "STRING")], options=options)
    table.write(pa.table({"id": [1, 2], "text": ["a", None]}))
    clickhouse = replace(READERS[-1], packages=())
    monkeypatch.setattr(sys, "executable", str(own_python("readers")))
    [found] = check_publication(table, [clickhouse]).readers
    assert (found.reader, found.outcome, found.rows) == ("ClickHouse", "equal", 2)
    other = {VERSION: "3", "deletion-vectors.enabled": "true"}
    table = new_table(tmp_path / "other", [("id", "BIGINT")], options=other)
    table.write(pa.table({"id": [1, 2]}))
    table.delete("id = 1")
    [found] = check_publication(table, [clickhouse]).readers
    assert found.outcome == "known limit"
    assert found.reason.startswith("ClickHouse reads no deletion vectors")
