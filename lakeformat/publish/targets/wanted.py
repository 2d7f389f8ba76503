# SPDX-License-Identifier: Apache-2.0
"""The catalogs and names that the options of a table ask for."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DATABASE_SUFFIX, MAIN_BRANCH

__all__ = ["HIVE_CATALOG", "REST_CATALOG", "SQL_CATALOG", "WantedCatalog", "wanted_catalogs"]

REST_CATALOG, HIVE_CATALOG, SQL_CATALOG = "rest-catalog", "hive-catalog", "sql-catalog"


@dataclass(frozen=True, slots=True)
class WantedCatalog:
    """A catalog that must list the published table, according to the options of the table."""

    kind: str
    names: tuple[tuple[str, str], ...]
    """The database and the table of each entry."""


def wanted_catalogs(handle: TableHandle) -> tuple[WantedCatalog, ...]:
    """Return the catalogs that the options name; empty for a branch, and if no option names one.

    Raise ``UnsupportedError`` if neither an option nor the directory of the table names a database.
    """
    if handle.layout.branch != MAIN_BRANCH:
        return ()
    options, kinds = handle.options, []
    if options.iceberg_storage in (REST_CATALOG, HIVE_CATALOG):
        kinds.append(options.iceberg_storage)
    if options.iceberg_sql_catalog:
        kinds.append(SQL_CATALOG)
    if not kinds:
        return ()
    names = _names(handle)
    return tuple(WantedCatalog(kind, names) for kind in kinds)


def _names(handle: TableHandle) -> tuple[tuple[str, str], ...]:
    """Return the database and the table of each entry in a catalog.

    ``metadata.iceberg.database`` may have several databases, separated by semicolons.
    """
    options = handle.options
    above, _, directory = handle.layout.root.rpartition("/")
    given = [each.strip() for each in options.iceberg_database.split(";") if each.strip()]
    if not given:
        database = above.rpartition("/")[2]
        if not database.endswith(DATABASE_SUFFIX):
            raise UnsupportedError(
                f"the directory of {handle.uri} names no database: set "
                "'metadata.iceberg.database' to the database of the table in the catalog"
            )
        given = [database.removesuffix(DATABASE_SUFFIX)]
    table = options.iceberg_table or directory
    return tuple((database, table) for database in dict.fromkeys(given))
