# SPDX-License-Identifier: Apache-2.0
"""Repairs the list of tables: finishes interrupted changes, and adds tables that are not listed.

Tables that cannot be repaired are in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lakeformat.catalog.leftovers import remove_dropped
from lakeformat.catalog.names import TableName, is_name
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.catalog.sql.drop import Drops
from lakeformat.catalog.sql.listing import Listing
from lakeformat.catalog.sql.locks import TableLocks
from lakeformat.catalog.sql.places import Places
from lakeformat.catalog.sql.rename import Renames
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
)

__all__ = ["Repair"]

_REFUSALS = (AlreadyExistsError, CommitConflictError, CorruptTableError, InvalidRequestError)
"""Errors that concern one table only: the table is reported as damaged, and the repair
continues.
"""


class Repair:
    """A repair of the tables for which ``covers`` returns True."""

    def __init__(
        self,
        listing: Listing,
        places: Places,
        locks: TableLocks,
        renames: Renames,
        drops: Drops,
        covers: Callable[[TableName], bool],
    ) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks
        self._renames = renames
        self._drops = drops
        self._covers = covers
        self._damaged: dict[TableName, None] = {}
        self._stuck: set[TableName] = set()
        """Names that the repair must not list, because their directory has files of a dropped or
        renamed table.
        """

    def run(self, databases: Iterable[str]) -> RepairReport:
        """Repair the tables of ``databases`` for which ``covers`` returns True, and return the
        report.

        A rename between two databases is finished if ``covers`` returns True for its old or its new
        name.
        """
        # Finish all drops and renames before a database is checked. Files that move to another
        # database belong to the table that is listed there. They must not be added as a table of
        # the database that they leave.
        dropped = self._finish_drops()
        moved = self._finish_renames()
        for name in self._sorted(self._listing.unreadable_renames()):
            self._damaged[name] = None
        report = RepairReport(moved=_texts(moved), dropped=_texts(dropped))
        for database in databases:
            report += self._check_database(database)
        return report + RepairReport(damaged=_texts(self._damaged))

    def _finish_drops(self) -> list[TableName]:
        dropped = []
        for name in self._sorted(self._listing.drops()):
            try:
                if self._drops.finish(name):
                    dropped.append(name)
            except _REFUSALS:
                self._damaged[name] = None
                self._stuck.add(name)
        return dropped

    def _finish_renames(self) -> list[TableName]:
        moved = []
        renames = self._listing.renames()
        for new in sorted(renames, key=str):
            old = renames[new]
            if not self._covers(new) and not self._covers(old):
                continue
            try:
                if self._renames.finish(new, old):
                    moved.append(new)
            except _REFUSALS:
                self._damaged[new] = None
                self._stuck.add(old)
        return moved

    def _check_database(self, database: str) -> RepairReport:
        hidden = remove_dropped(*self._places.of_database(database))
        found = []
        for name in self._sorted(self._places.tables_in(database)):
            if is_name("table", name.table):
                found.append(name)
            else:
                self._damaged[name] = None
        registered = [name for name in found if self._register(name)]
        listed = self._sorted(TableName(database, name) for name in self._listing.tables(database))
        there = [name for name in listed if self._places.has_files(name)]
        return RepairReport(
            registered=_texts(registered),
            dropped=tuple(f"{database}.{name}" for name in hidden),
            synchronized=_texts(name for name in there if self._synchronize(name)),
            without_files=_texts(name for name in listed if name not in there),
        )

    def _register(self, name: TableName) -> bool:
        if self._listing.has_table(name) or name in self._stuck:
            return False
        with self._locks.hold(name):
            if (
                self._listing.has_view(name)
                or self._listing.has_table(name)
                or not self._places.has_files(name)
            ):
                return False
            try:
                schema = self._places.newest_schema(name)
            except _REFUSALS:
                self._damaged[name] = None
                return False
            self._listing.add_table(name, schema)
        return True

    def _synchronize(self, name: TableName) -> bool:
        with self._locks.hold(name):
            try:
                return self._listing.synchronize(name, lambda: self._places.newest_schema(name))
            except _REFUSALS:
                self._damaged[name] = None
                return False

    def _sorted(self, names: Iterable[TableName]) -> list[TableName]:
        return sorted((name for name in names if self._covers(name)), key=str)


def _texts(names: Iterable[TableName]) -> tuple[str, ...]:
    return tuple(map(str, names))
