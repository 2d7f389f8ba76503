"""Renaming a listed table: its row goes first, its files follow."""

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
    """Renames, and the rest of those that a crash interrupted."""

    def __init__(self, listing: Listing, places: Places, locks: TableLocks) -> None:
        self._listing = listing
        self._places = places
        self._locks = locks

    def run_held(self, old: TableName, new: TableName, held: Held) -> None:
        """Rename a table; the caller holds both locks, ``held`` is that of the new name."""
        self.refuse_files_on_their_way(new)
        if self._listing.has_table(new) or self._places.has_files(new):
            raise AlreadyExistsError(
                f"table '{new}' exists in {self._listing.address}, or files of one do: "
                f"'{old}' stays"
            )
        self._listing.begin_rename(old, new)
        try:
            self._move_files(old, new, held)
        except LakeError as error:
            if self._is_refusal(error, new):
                self._listing.undo_rename(old, new)
                raise
            raise type(error)(
                f"{error} Table '{old}' is called '{new}' already: repair('{new}') moves its "
                "files when that is possible again."
            ) from error

    def unfinished(self, new: TableName) -> TableName | None:
        """The old name of a table, if its place may still hold files of it."""
        old = self._listing.renamed_from(new)
        if old is None or not self._listing.has_table(new):
            return None
        if self._listing.has_table(old):  # made anew: what is there is not ours
            return None
        # A directory moves whole: if it has arrived, the old place is somebody else's.
        return old if self._copies(new) or not self._places.has_files(new) else None

    def place_of(self, name: TableName) -> TableName:
        """The name in whose place the files of a table are."""
        old = self.unfinished(name)
        return old if old is not None and self._places.has_files(old) else name

    def finish(self, new: TableName, old: TableName) -> bool:
        """Bring the files to where the name of their table says; False if there are none."""
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
            if source is not None:  # all is copied, else the schemas would still be there
                storage, layout = self._places.of_table(source)
                storage.delete_directory(layout.root)
            self._listing.finish(new, RENAMED_FROM)
            return True

    def refuse_files_on_their_way(self, name: TableName) -> None:
        """Whoever took a name whose place holds another table's files would mix the two."""
        for new, old in self._listing.renames().items():
            if old != name or self.unfinished(new) is None:
                continue
            storage, layout = self._places.of_table(name)
            if storage.directory_exists(layout.root):
                raise AlreadyExistsError(
                    f"files of table '{new}', which was renamed half-way, are in the place of "
                    f"'{name}': repair('{new}') moves them"
                )

    def _move_files(self, old: TableName, new: TableName, held: Held) -> None:
        storage, target = self._places.of_table(new)
        _, source = self._places.of_table(old)
        publishing = self._locks.creating(storage, held)
        move_directory(publishing, source.root, target.root, last=SCHEMA_DIRECTORY)
        self._listing.finish(new, RENAMED_FROM)

    def _is_refusal(self, error: LakeError, new: TableName) -> bool:
        """Whether every file is where it was, and none of a copy is in the new place."""
        if isinstance(error, AlreadyExistsError | CommitConflictError):
            return True
        storage, target = self._places.of_table(new)
        return isinstance(error, InvalidRequestError) and not storage.directory_exists(target.root)

    def _copies(self, name: TableName) -> bool:
        return mover(self._places.of_table(name)[0]) is None
