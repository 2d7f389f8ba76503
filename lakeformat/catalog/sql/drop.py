# SPDX-License-Identifier: Apache-2.0
"""Drops a table: first removes it from the list of the catalog, then deletes its files."""

from __future__ import annotations

from collections.abc import Callable

from lakeformat.catalog.drop import DropPlan, run_drop
from lakeformat.catalog.names import TableName
from lakeformat.catalog.sql.listing import Listing
from lakeformat.catalog.sql.locks import TableLocks
from lakeformat.catalog.sql.places import Places
from lakeformat.catalog.sql.rename import Renames
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.storage.sql.catalog_rows import DROPPED

__all__ = ["Drops"]


class Drops:
    """Drops tables, and finishes interrupted drops.

    ``plan`` returns the plan of a table's drop.
    """

    def __init__(
        self,
        listing: Listing,
        places: Places,
        locks: TableLocks,
        renames: Renames,
        plan: Callable[[TableName], DropPlan],
        new_id: Callable[[], str],
    ) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks
        self._renames = renames
        self._plan = plan
        self._new_id = new_id

    def run(self, name: TableName, plan: DropPlan, check: Callable[[], None]) -> None:
        """Drop a table under its lock.

        ``check`` is called first; it raises ``CommitConflictError`` if a new plan of the drop
        differs from ``plan``.
        """
        old = self._listing.renamed_from(name)
        with self._locks.hold_all(name, *(() if old is None else (old,))):
            check()
            # After an interrupted rename the directory of the old name also has files.
            source = self._renames.unfinished(name) if old is not None else None
            places = [name] if source is None else [source, name]
            self._listing.begin_drop(name, places)
            for place in places:
                run_drop(*self._places.of_table(place), plan, self._new_id)
                self._listing.finish(place, DROPPED)

    def run_leftovers(self, name: TableName, plan: DropPlan, check: Callable[[], None]) -> None:
        """Delete the files of a former table that the catalog does not list and that has no schema.

        ``check`` is called first, under the lock; it raises ``CommitConflictError`` if a new plan
        of the drop differs from ``plan``.
        """
        with self._locks.hold(name):
            check()
            self._renames.refuse_files_on_their_way(name)
            run_drop(*self._places.of_table(name), plan, self._new_id)

    def finish(self, name: TableName) -> bool:
        """Finish an interrupted drop of ``name`` and return True; return False if no drop was
        interrupted.

        If another program has created the table again, its files are kept, and False is returned.
        """
        with self._locks.hold(name):
            return self.finish_held(name)

    def finish_held(self, name: TableName) -> bool:
        """Do the same as ``finish``, for a caller that already has the lock of ``name``."""
        if name not in self._listing.drops():
            return False
        # Another program ignored the record and created the table again.
        again = self._listing.has_table(name)
        if not again:
            run_drop(*self._places.of_table(name), self._rest(name), self._new_id)
        self._listing.finish(name, DROPPED)
        return not again

    def _rest(self, name: TableName) -> DropPlan:
        storage, layout = self._places.of_table(name)
        try:
            schema_ids(storage, layout)
        except CorruptTableError:
            # Some schemas are already deleted. So the files in external paths are, too: schemas are
            # deleted last.
            return DropPlan(str(name), storage.uri(layout.root), ())
        return self._plan(name)
