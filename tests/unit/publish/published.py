"""Published tables in memory, and the rows that a reader of Iceberg sees in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.iceberg.table import IcebergTable, load_iceberg_table
from lakeformat.paimon.metadata.schema_file import alter_schema
from lakeformat.paimon.table import load_table
from lakeformat.publish.place import versions_of
from lakeformat.publish.versions import FIRST_NUMBER
from lakeformat.storage import Storage
from tests.crash.simulated import simulated

ROOT = "wh/shop.db/orders"
PUBLISHED = {"metadata.iceberg.storage": "table-location"}
KEYED = {"primary_key": ["id"], "options": {"bucket": "1"}}


def catalog_in(storage: Storage) -> FileSystemCatalog:
    catalog = FileSystemCatalog(storage, "wh", simulated(len(storage.list("wh"))))
    catalog.create_database("shop", exist_ok=True)
    return catalog


def catalog_of(table: lake.Table) -> FileSystemCatalog:
    """The catalog of a table, which continues the names of its files."""
    return FileSystemCatalog(table._handle.storage, "wh", table._handle.environment)


def uuids(first: int) -> Environment:
    """A simulation whose names are UUIDs, as readers and the removal of orphans want them."""
    world = simulated(first)
    return replace(world, new_id=lambda: f"{world.new_id()}-0000-0000-0000-000000000000")


def published_table(
    storage: Storage,
    columns: list[tuple[str, str]],
    *,
    options: dict[str, str] | None = None,
    **keys: Any,
) -> lake.Table:
    """A new table whose commits are published."""
    given = {**PUBLISHED, **(options or {})}
    return catalog_in(storage).create_table("shop.orders", columns, options=given, **keys)


def unobserved(table: lake.Table) -> lake.Table:
    """The table as another engine writes it: its commits are not published."""
    handle = table._handle
    bare = load_table(handle.storage, handle.layout, simulated(500))
    options = {**bare._handle.options.to_dict(), "metadata.iceberg.storage": "disabled"}
    object.__setattr__(bare._handle.options, "_raw", options)
    return bare


def changed_elsewhere(table: lake.Table, *changes: lake.SchemaChange) -> lake.Table:
    """Change the schema as Flink does, which knows no rules of the publication."""
    handle = table._handle
    alter_schema(handle.storage, handle.layout, changes, handle.environment)
    return catalog_of(table).table("shop.orders")


def rows_of(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def iceberg(table: lake.Table) -> IcebergTable:
    """The table as a reader of Iceberg opens it: by the newest metadata file."""
    versions = versions_of(table._handle)
    newest = versions.shown()
    assert newest is not None
    return load_iceberg_table(
        versions.storage, versions.root, versions.outside, "main", newest.path, simulated()
    )


def number_of(change: int) -> int:
    """The number in the name of the metadata file that the n-th change wrote."""
    return FIRST_NUMBER - 1 + change


def file_of(change: int) -> str:
    """The name of the metadata file that the n-th change wrote."""
    return f"v{number_of(change)}.metadata.json"


def content(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows in an order that does not depend on files."""
    return sorted(rows.to_pylist(), key=repr)


def seen(table: lake.Table, snapshot: int | None = None) -> list[dict[str, Any]]:
    """The rows that a reader of Iceberg sees, at a snapshot or now."""
    return content(iceberg(table).scan(snapshot=snapshot).to_arrow())
