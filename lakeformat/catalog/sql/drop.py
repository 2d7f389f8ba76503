"""Dropping a listed table: the row goes first, the files after it."""

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
    """Drops, and the rest of those that were interrupted; ``plan`` says what a drop removes."""

    def __init__(
        self,
        listing: Listing,
        places: Places,
        locks: TableLocks,
        renames: Renames,
        plan: Callable[[TableName], DropPlan],
    ) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks
        self._renames = renames
        self._plan = plan

    def run(self, name: TableName, plan: DropPlan, check: Callable[[], None]) -> None:
        """Drop a table; ``check`` refuses, under the lock, what is not as it was planned."""
        old = self._listing.renamed_from(name)
        with self._locks.hold_all(name, *(() if old is None else (old,))):
            check()
            # A rename that a crash interrupted has left files in the old name's place.
            source = self._renames.unfinished(name) if old is not None else None
            places = [name] if source is None else [source, name]
            self._listing.begin_drop(name, places)
            for place in places:
                run_drop(*self._places.of_table(place), plan)
                self._listing.finish(place, DROPPED)

    def run_leftovers(self, name: TableName, plan: DropPlan, check: Callable[[], None]) -> None:
        """Remove files that nobody lists and that are no table any more."""
        with self._locks.hold(name):
            check()
            self._renames.refuse_files_on_their_way(name)
            run_drop(*self._places.of_table(name), plan)

    def finish(self, name: TableName) -> bool:
        """Remove what an interrupted drop left in a name's place; False if there is none of it."""
        with self._locks.hold(name):
            return self.finish_held(name)

    def finish_held(self, name: TableName) -> bool:
        """Like ``finish``, for a caller who holds the lock of the name."""
        if name not in self._listing.drops():
            return False
        again = self._listing.has_table(name)  # made anew by a program that does not know the mark
        if not again:
            run_drop(*self._places.of_table(name), self._rest(name))
        self._listing.finish(name, DROPPED)
        return not again

    def _rest(self, name: TableName) -> DropPlan:
        storage, layout = self._places.of_table(name)
        try:
            schema_ids(storage, layout)
        except CorruptTableError:
            # Some schemas are gone, and they go last: what they named outside is gone already.
            return DropPlan(str(name), storage.uri(layout.root), ())
        return self._plan(name)
