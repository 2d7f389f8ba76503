# SPDX-License-Identifier: Apache-2.0
"""Renames a listed table: first its row, then its files."""

from __future__ import annotations

from lakeformat.catalog.drop import SCHEMA_DIRECTORY
from lakeformat.catalog.names import TableName
from lakeformat.catalog.sql.listing import Listing
from lakeformat.catalog.sql.locks import TableLocks
from lakeformat.catalog.sql.places import Places
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
)
from lakeformat.storage import Held
from lakeformat.storage.move_directory import move_directory, mover
from lakeformat.storage.sql.catalog_rows import RENAMED_FROM

__all__ = ["Renames"]


class Renames:
    """Renames tables and finishes renames that a crash interrupted."""

    def __init__(self, listing: Listing, places: Places, locks: TableLocks) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks

    def run_held(self, old: TableName, new: TableName, held: Held) -> None:
        """Rename a table. The caller holds the locks of both names; ``held`` is the lock of
        ``new``.
        """
        self.refuse_files_on_their_way(new)
        if self._listing.has_table(new) or self._places.has_files(new):
            raise AlreadyExistsError(
                f"cannot rename '{old}': table '{new}', or files of it, exist in "
                f"{self._listing.address}. Choose another name"
            )
        self._listing.begin_rename(old, new)
        try:
            self._move_files(old, new, held)
        except LakeError as error:
            if self._is_refusal(error, new):
                self._listing.undo_rename(old, new)
                raise
            raise type(error)(
                f"{error} Table '{old}' is already listed as '{new}': fix the cause, then move its "
                f"files with catalog.repair('{new}')"
            ) from error

    def unfinished(self, new: TableName) -> TableName | None:
        """Return the old name of table ``new`` if its files may still be in the old directory, else
        None.
        """
        old = self._listing.renamed_from(new)
        if old is None or not self._listing.has_table(new):
            return None
        if self._listing.has_table(old):  # created again: the files there belong to that table
            return None
        # A directory moves as a whole: once it has arrived, the old place is free for other tables.
        return old if self._copies(new) or not self._places.has_files(new) else None

    def place_of(self, name: TableName) -> TableName:
        """Return the name whose directory holds the files of a table."""
        old = self.unfinished(name)
        return old if old is not None and self._places.has_files(old) else name

    def finish(self, new: TableName, old: TableName) -> bool:
        """Move the files of table ``new`` from the directory of ``old`` to its own; return False if
        there are none to move.
        """
        with self._locks.hold_all(old, new) as held:
            if self._listing.renamed_from(new) != old:
                return False
            if self._listing.has_table(old) or not self._listing.has_table(new):
                self._listing.finish(new, RENAMED_FROM)
                return False
            source = self.unfinished(new)
            if source is not None and self._places.has_files(source):
                self._move_files(source, new, held[new])  # from where it stopped
                return True
            if not self._places.has_files(new):
                return False  # nothing to move: it is reported as without files
            if source is not None:  # all files are copied: the schemas are copied last
                storage, layout = self._places.of_table(source)
                storage.delete_directory(layout.root)
            self._listing.finish(new, RENAMED_FROM)
            return True

    def refuse_files_on_their_way(self, name: TableName) -> None:
        """Refuse a name whose directory still holds files of a renamed table: the two would mix."""
        for new, old in self._listing.renames().items():
            if old != name or self.unfinished(new) is None:
                continue
            storage, layout = self._places.of_table(name)
            if storage.directory_exists(layout.root):
                raise AlreadyExistsError(
                    f"the directory of '{name}' still holds files of table '{new}', whose rename "
                    f"was interrupted: move them with catalog.repair('{new}')"
                )

    def _move_files(self, old: TableName, new: TableName, held: Held) -> None:
        storage, target = self._places.of_table(new)
        _, source = self._places.of_table(old)
        publishing = self._locks.creating(storage, held)
        move_directory(publishing, source.root, target.root, last=SCHEMA_DIRECTORY)
        self._listing.finish(new, RENAMED_FROM)

    def _is_refusal(self, error: LakeError, new: TableName) -> bool:
        """Return True if no file has moved and the directory of ``new`` holds no copy."""
        if isinstance(error, AlreadyExistsError | CommitConflictError):
            return True
        storage, target = self._places.of_table(new)
        return isinstance(error, InvalidRequestError) and not storage.directory_exists(target.root)

    def _copies(self, name: TableName) -> bool:
        return mover(self._places.of_table(name)[0]) is None
