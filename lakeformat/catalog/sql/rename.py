# SPDX-License-Identifier: Apache-2.0
"""Renames a table: first changes its name in the list of the catalog, then moves its files."""

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
from lakeformat.types.sentence import sentence

__all__ = ["Renames"]


class Renames:
    """Renames tables, and finishes interrupted renames."""

    def __init__(self, listing: Listing, places: Places, locks: TableLocks) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks

    def run_held(self, old: TableName, new: TableName, held: Held) -> None:
        """Rename a table; the caller has the locks of both names, and ``held`` is the lock of
        ``new``.

        Raise ``AlreadyExistsError`` if ``new`` is listed or has files. If the storage fails while
        files are moved, the new name is kept, and ``repair`` moves the rest.
        """
        self.refuse_files_on_their_way(new)
        if self._listing.has_table(new):
            raise AlreadyExistsError(
                f"cannot rename '{old}': table '{new}' exists in {self._listing.address}. Choose "
                "another name"
            )
        if self._places.has_files(new):
            storage, layout = self._places.of_table(new)
            raise AlreadyExistsError(
                f"cannot rename '{old}': table '{new}' is not listed in {self._listing.address}, "
                f"but its directory {storage.uri(layout.root)} has files. Choose another name"
            )
        self._listing.begin_rename(old, new)
        try:
            self._move_files(old, new, held)
        except LakeError as error:
            if self._is_refusal(error, new):
                self._listing.undo_rename(old, new)
                raise
            raise type(error)(
                f"{sentence(error)} Table '{old}' is already listed as '{new}': fix the cause, "
                f"then move its files with catalog.repair('{new}')"
            ) from error

    def unfinished(self, new: TableName) -> TableName | None:
        """Return the old name of table ``new`` if the old directory may still have its files.

        Otherwise return None.
        """
        old = self._listing.renamed_from(new)
        if old is None or not self._listing.has_table(new):
            return None
        # The old name is a new table, so the files there are its own.
        if self._listing.has_table(old):
            return None
        # If the storage moves a directory at once, files at the new place prove that the move is
        # complete.
        return old if self._copies(new) or not self._places.has_files(new) else None

    def place_of(self, name: TableName) -> TableName:
        """Return the old name of table ``name`` if a rename has left files in the old directory.

        Otherwise return ``name``.
        """
        old = self.unfinished(name)
        return old if old is not None and self._places.has_files(old) else name

    def finish(self, new: TableName, old: TableName) -> bool:
        """Finish the interrupted rename from ``old`` to ``new``, and return True.

        Return False if another call has finished it, or if no files are found. Return False, too,
        if ``old`` is a table again, or if ``new`` is no longer listed.
        """
        with self._locks.hold_all(old, new) as held:
            if self._listing.renamed_from(new) != old:
                return False
            if self._listing.has_table(old) or not self._listing.has_table(new):
                self._listing.finish(new, RENAMED_FROM)
                return False
            source = self.unfinished(new)
            if source is not None and self._places.has_files(source):
                self._move_files(source, new, held[new])  # continues an interrupted move
                return True
            if not self._places.has_files(new):
                return False  # no files: the repair reports the table as without files
            if source is not None:  # schemas are copied last, so all files are copied
                storage, layout = self._places.of_table(source)
                storage.delete_directory(layout.root)
            self._listing.finish(new, RENAMED_FROM)
            return True

    def refuse_files_on_their_way(self, name: TableName) -> None:
        """Raise ``AlreadyExistsError`` if the directory of ``name`` still has files of a renamed
        table.

        A new table in this directory would mix its files with them.
        """
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
        """Return True if the rename was refused before any file was moved or copied."""
        if isinstance(error, AlreadyExistsError | CommitConflictError):
            return True
        storage, target = self._places.of_table(new)
        return isinstance(error, InvalidRequestError) and not storage.directory_exists(target.root)

    def _copies(self, name: TableName) -> bool:
        return mover(self._places.of_table(name)[0]) is None
