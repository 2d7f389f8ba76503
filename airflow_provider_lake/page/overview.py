# SPDX-License-Identifier: Apache-2.0
"""The tables of a warehouse, and the health of as many as can be read in a limited time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_lake.page.team_lake import lake_of_connection

if TYPE_CHECKING:
    from lakeformat import Catalog, HealthReport

__all__ = ["Overview"]

_MOST_NAMES = 1000
_READING_SECONDS = 8.0
"""The seconds after which no further table is read; the page then links to the next table."""


@dataclass(slots=True, kw_only=True)
class Overview:
    """The tables of a warehouse with their health. A page can show it while another thread still
    fills it.
    """

    location: str = ""
    databases: dict[str, list[str]] = field(default_factory=dict)
    left_out: int = 0
    """The number of tables that are not listed, because a page lists at most 1,000."""
    health: dict[str, HealthReport] = field(default_factory=dict)
    """The health of each table that was read, by ``database.table``."""
    troubles: dict[str, str] = field(default_factory=dict)
    """The message of the error for each table that could not be read."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reason for each table whose format has no health report."""
    first: str = ""
    """The name of the first table to read; empty for the first of the list."""
    unread: str | None = None
    """The name of the next table to read, if the time was not enough for all; else None."""

    def fill(self, connection_id: str, first: str) -> None:
        """List the tables, then read their health from the table ``first`` on. Stop after
        ``_READING_SECONDS``; ``unread`` then names the next table.
        """
        catalog = lake_of_connection(connection_id).get_conn()
        self.location, self.first = catalog.location, first
        self._list(catalog)
        give_up = time.monotonic() + _READING_SECONDS
        for name in self.names():
            if _place(name) < _place(first):
                continue
            self.unread = name
            if time.monotonic() >= give_up:
                return
            self._read(catalog, name)
        self.unread = None

    def names(self) -> Iterator[str]:
        """Yield each listed table as ``database.table``, in the order of the page."""
        for database, tables in self.databases.items():
            yield from (f"{database}.{table}" for table in tables)

    def counts(self) -> dict[str, int]:
        """Return the number of tables for each verdict that occurs, the most urgent first. Tables
        that could not be read count as ``unreadable``.
        """
        verdicts = [str(each.verdict) for each in self.health.values()]
        found = {"unreadable": len(self.troubles)}
        for verdict in ("unhealthy", "degraded", "healthy", "empty"):
            found[verdict] = verdicts.count(verdict)
        return {verdict: count for verdict, count in found.items() if count}

    def _list(self, catalog: Catalog) -> None:
        shown = 0
        for database in sorted(catalog.list_databases()):
            tables = sorted(catalog.list_tables(database))
            listed = tables[: max(_MOST_NAMES - shown, 0)]
            shown += len(listed)
            self.left_out += len(tables) - len(listed)
            self.databases[database] = listed

    def _read(self, catalog: Catalog, name: str) -> None:
        from lakeformat import LakeError, UnsupportedError

        try:
            self.health[name] = catalog.table(name).health(time_travel=False)
        except LakeError as error:
            if isinstance(error, UnsupportedError) and error.lacks is not None:
                self.skipped[name] = error.lacks
            else:
                self.troubles[name] = str(error)


def _place(name: str) -> tuple[str, ...]:
    """Return the sort key of a name: the database, then the table."""
    return tuple(name.split(".", 1))
