# SPDX-License-Identifier: Apache-2.0
"""The parts of a published table outside of its directory, and their removal.

These parts are found before a table is dropped or renamed, and removed afterwards. They are kept if
another process creates and publishes a table with the old name in the meantime, because the new
table uses the same directory and entries.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lakeformat.errors import LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import METADATA
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import table_exists
from lakeformat.publish.place import versions_of
from lakeformat.publish.targets.entry import CatalogEntry, Targets, is_ours
from lakeformat.publish.targets.followers import entries_of
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage.empty_directory import remove_empty_directory
from lakeformat.types.sentence import sentence

__all__ = ["NoWithdrawal", "Withdrawal", "withdrawal_of"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The catalog entries of a dropped or renamed table, and its metadata in the warehouse."""

    table: TableHandle
    """The table under its old name."""
    newest: LoadedMetadata
    versions: PublishedVersions | None
    """The metadata files in the warehouse; None if they are in the table's own directory."""
    entries: tuple[CatalogEntry, ...]
    kept = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entries, then the URI of the directory, for the report of a dry run."""
        names = tuple(each.name for each in self.entries)
        versions = self.versions
        return names if versions is None else (*names, versions.storage.uri(versions.root))

    def run(self) -> None:
        """Remove the entries, then the metadata, unless they belong to a new table.

        If the removal of one part fails, the other parts are still removed, and a warning names
        what must be removed by hand.
        """
        try:
            if self._belongs_to_a_new_table():
                _log.info(
                    "kept the Iceberg metadata and the entries of %s, because another process has "
                    "created and published a new table there",
                    self.table.uri,
                )
                return
        except LakeError as reason:
            NoWithdrawal(f"the Iceberg metadata of {self.table.uri} is not removed: {reason}").run()
            return
        for entry in self.entries:
            try:
                self._remove(entry)
            except LakeError as reason:
                _log.warning(
                    "the entry of %s could not be removed: %s The table of this entry was dropped "
                    "or renamed: drop the entry in the catalog",
                    *(entry.name, sentence(reason)),
                )
        if self.versions is None:
            return
        storage, root = self.versions.storage, self.versions.root
        try:
            storage.delete_directory(f"{root}/{METADATA}")
            remove_empty_directory(storage, root)
        except LakeError as reason:
            _log.warning(
                "the Iceberg metadata of a dropped or renamed table could not be deleted: %s "
                "Delete the directory %s",
                *(sentence(reason), storage.uri(root)),
            )

    def _belongs_to_a_new_table(self) -> bool:
        """Return True if a new table with the old name has published metadata in the warehouse.

        Return False if the old table had its metadata in its own directory, because that directory
        was deleted or renamed. If there is a new table, ``_remove`` recognises the entries of the
        new table by their UUID, and keeps them.
        """
        if self.versions is None or not table_exists(self.table.storage, self.table.layout):
            return False
        newest = self.versions.newest()
        return newest is not None and newest.metadata_file != self.newest.metadata_file

    def _remove(self, entry: CatalogEntry) -> None:
        named = entry.find()
        if named is not None and is_ours(named, self.newest):
            entry.remove()
            _log.info("removed the entry of %s", entry.name)


@dataclass(frozen=True, slots=True)
class NoWithdrawal:
    """Metadata that cannot be removed when its table is dropped or renamed, with the reason."""

    kept: str
    names = ()

    def run(self) -> None:
        """Log a warning with the reason."""
        _log.warning(
            "%s The table was dropped or renamed nevertheless: delete its Iceberg metadata by hand",
            sentence(self.kept),
        )


def withdrawal_of(
    handle: TableHandle, targets: Targets | None, moved: TableHandle | None = None
) -> Withdrawal | None:
    """Return the catalog entries and the directory to remove when a table is dropped or renamed.

    ``moved`` is the table under its new name if its directory is already renamed.

    Return None if there is nothing to remove, or if no metadata is published. Raise
    ``UnsupportedError`` if the directory in the warehouse cannot be used, or if an option of a
    catalog is missing or wrong. Raise ``InvalidRequestError`` for metadata that no publication can
    have written, and if the options name catalogs, but ``targets`` is None.
    """
    is_at_table = handle.options.iceberg_is_at_table
    versions = versions_of(moved if moved is not None and is_at_table else handle)
    newest = versions.newest()
    if newest is None:
        return None
    outside = None if is_at_table else versions
    entries = entries_of(handle, targets)
    if not entries and outside is None:
        return None
    return Withdrawal(handle, newest, outside, entries)
