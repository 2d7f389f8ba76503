"""From what a caller says to a table: by name, in the warehouse said here or with the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import lakeformat as lake
from spark_jobs.frames.parts import classic_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TableName", "Warehouse", "find_table", "place_of", "remember_place"]

TableName: TypeAlias = "str | lake.Table"
"""``database.table``, or a table that is open already."""

DEFAULT_WAREHOUSE = "warehouse"


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Where tables are found by their names."""

    warehouse: str = DEFAULT_WAREHOUSE
    catalog_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the catalog and its storage; some are secret, so none is ever shown."""

    def table(self, name: str) -> lake.Table:
        """Open a table."""
        catalog = lake.open_catalog(self.warehouse, options=self.catalog_options)
        return catalog.table(name)


# In this process's memory alone: what is in Spark's configuration is on its web pages.
_PLACES: WeakKeyDictionary[SparkSession, Warehouse] = WeakKeyDictionary()


def remember_place(spark: SparkSession, place: Warehouse) -> None:
    """Where the tables of a session are, unless a call says otherwise."""
    _PLACES[spark] = place


def place_of(
    spark: SparkSession, warehouse: str | None, catalog_options: Mapping[str, str] | None
) -> Warehouse:
    """Where a call finds its tables."""
    known = _remembered(spark)
    if warehouse is None and catalog_options is None:
        return known
    if warehouse is None or warehouse == known.warehouse:
        options = known.catalog_options if catalog_options is None else catalog_options
        return Warehouse(known.warehouse, options)
    return Warehouse(warehouse, catalog_options or {})


def _remembered(spark: SparkSession) -> Warehouse:
    """Of the session, or of the one it was cloned from: a stream runs in a clone."""
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
    """The table meant."""
    if not isinstance(table, str):
        if warehouse is not None or catalog_options is not None:
            raise lake.InvalidRequestError(
                f"{table!r} is open already: warehouse and catalog_options go with a name"
            )
        return table
    return place_of(spark, warehouse, catalog_options).table(table)
