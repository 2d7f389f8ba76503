# SPDX-License-Identifier: Apache-2.0
"""Views of a table for SQL: its rows, its changes and its system tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.frames.read import read_changes, read_table
from spark_jobs.frames.tables import TableName, find_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["create_views"]


def create_views(
    spark: SparkSession,
    table: TableName,
    *,
    prefix: str | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Create temporary views of a table for ``spark.sql``, and return their names.

    For ``shop.orders``, ``orders`` has the rows, ``orders_changes`` all changes since the earliest
    snapshot, and ``orders_snapshots``, ``orders_files`` and so on the system tables. The views of
    a path or an open table have the name of its directory in place of ``orders``. ``prefix``
    replaces this name. The views of rows and changes show the newest snapshot at the time of the
    call; call the function again for newer rows. Views of system tables are read again at each use.

    Raises ``NotFoundError`` for a missing table, and ``UnsupportedError`` for a column type that is
    not passed to Spark, such as VARIANT.
    """
    opened = find_table(spark, table, warehouse, catalog_options)
    name = prefix or _name_of(table)
    first = next((each.position for each in opened.snapshots()), None)
    before = opened.position(0) if first is None else opened.position_before(first)
    frames = {
        name: read_table(spark, opened),
        f"{name}_changes": read_changes(spark, opened, before),
    }
    for system_table in opened.system_tables:
        frames[f"{name}_{system_table}"] = read_table(spark, opened.system_table(system_table))
    for view, frame in frames.items():
        frame.createOrReplaceTempView(view)
    return [*frames]


def _name_of(table: TableName) -> str:
    if isinstance(table, str) and "/" not in table:
        return re.sub(r"\W", "_", table.rpartition(".")[2])
    place = table if isinstance(table, str) else table.location
    return re.sub(r"\W", "_", place.rstrip("/").rpartition("/")[2])
