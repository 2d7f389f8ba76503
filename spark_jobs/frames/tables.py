# SPDX-License-Identifier: Apache-2.0
"""Finds tables by name, in the warehouse of the call or of the Spark session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import lakeformat as lake
from lakeformat.storage import is_storage_option
from spark_jobs.frames.parts import classic_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "AnyTable",
    "TableName",
    "Warehouse",
    "find_readable_table",
    "find_table",
    "place_of",
    "remember_place",
    "require_streamed",
]

AnyTable: TypeAlias = "lake.Table | lake.IcebergTable | lake.MixedTable"
TableName: TypeAlias = "str | lake.Table | lake.IcebergTable | lake.MixedTable"
"""``database.table``, the directory of a table, or an open table."""

DEFAULT_WAREHOUSE = "warehouse"


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse, in which tables are found by name."""

    warehouse: str = DEFAULT_WAREHOUSE
    catalog_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the catalog and its storage. Some are secrets, so the repr shows none."""

    def table(self, name: str) -> lake.Table:
        """Open a table of any format for a write; raise ``NotFoundError`` if it does not exist."""
        found: Any = self.table_of_any_format(name)
        return found  # type: ignore[no-any-return]

    def table_of_any_format(self, name: str) -> AnyTable:
        """Open a table of any format for a read; raise ``NotFoundError`` if it does not exist. A
        name with a slash is the directory of the table.
        """
        options = self.catalog_options
        if "/" in name:
            of_storage = {key: options[key] for key in options if is_storage_option(key)}
            return lake.open_table(name, options=of_storage)
        return lake.open_catalog(self.warehouse, options=options).table(name)


# Kept only in memory, because Spark's web pages show its configuration.
_PLACES: WeakKeyDictionary[SparkSession, Warehouse] = WeakKeyDictionary()


def remember_place(spark: SparkSession, place: Warehouse) -> None:
    """Set ``place`` as the warehouse of a session, for later calls without a warehouse."""
    _PLACES[spark] = place


def place_of(
    spark: SparkSession, warehouse: str | None, catalog_options: Mapping[str, str] | None
) -> Warehouse:
    """Return the warehouse with the given path and options.

    If ``warehouse`` is None, the warehouse of the session is used. If ``catalog_options`` is None,
    the options of the session are used, but only with the session's own warehouse.
    """
    known = _remembered(spark)
    if warehouse is None and catalog_options is None:
        return known
    if warehouse is None or warehouse == known.warehouse:
        options = known.catalog_options if catalog_options is None else catalog_options
        return Warehouse(known.warehouse, options)
    return Warehouse(warehouse, catalog_options or {})


def _remembered(spark: SparkSession) -> Warehouse:
    """Return the warehouse that was set for ``spark``. If none was set, return that of another
    session in the same Spark context, because a stream runs in a clone of its session. Without such
    a session, return the default warehouse.
    """
    if (place := _PLACES.get(spark)) is not None:
        return place
    context = classic_context(spark)
    clones = [
        p for s, p in _PLACES.items() if context is not None and classic_context(s) is context
    ]
    return clones[-1] if clones else Warehouse()


def find_table(
    spark: SparkSession,
    table: TableName,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> lake.Table:
    """Return a table of any format for a write: the one with this name, or the open table itself.

    Raises ``NotFoundError`` for an unknown name, and ``InvalidRequestError`` for a warehouse
    or options together with an open table.
    """
    found: Any = find_readable_table(spark, table, warehouse, catalog_options)
    return found  # type: ignore[no-any-return]


def find_readable_table(
    spark: SparkSession,
    table: TableName,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> AnyTable:
    """Return a table of any format for a read: the one with this name, or the open table itself.

    Raises the errors of ``find_table``.
    """
    if not isinstance(table, str):
        if warehouse is not None or catalog_options is not None:
            raise lake.InvalidRequestError(
                f"the table {table.location} is already open: leave out the arguments 'warehouse' "
                "and 'catalog_options'"
            )
        return table
    return place_of(spark, warehouse, catalog_options).table_of_any_format(table)


def require_streamed(table: AnyTable) -> Any:
    """Return the table; raise ``UnsupportedError`` for a system table: Spark cannot stream it."""
    if "stream" in table.operations:
        return table
    raise lake.UnsupportedError(
        f"Spark cannot stream a system table of {table.location}: stream the table itself, or "
        "read the system table with spark.read"
    )
