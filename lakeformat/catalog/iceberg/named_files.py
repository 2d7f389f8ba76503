# SPDX-License-Identifier: Apache-2.0
"""Metastores that store only the address of a table's metadata file; this library writes the
file.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.catalog_pointer import CatalogPointer
from lakeformat.catalog.iceberg.metastore import Describe, Metastore, changed_meanwhile
from lakeformat.catalog.iceberg.missing_snapshots import misses_snapshots
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.iceberg.commit.catalog_file import write_catalog_file
from lakeformat.iceberg.commit.old_metadata import delete_old_metadata
from lakeformat.iceberg.create.new_table import location_at
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import table_exists
from lakeformat.storage import Storage
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.sentence import sentence

__all__ = ["NamedFilesMetastore"]

_log = logging.getLogger(__name__)


class NamedFilesMetastore(Metastore):
    """A metastore that stores only the address of each table's metadata file.

    A commit writes a new file, and replaces the address if no other writer has replaced it.
    """

    deletes_files = False

    _files: CatalogFiles
    _environment: Environment
    _ending: ClassVar[str] = ""
    """The suffix of a database's directory in the warehouse, such as ``.db``."""

    @abstractmethod
    def answer(self, name: TableName) -> Answer:
        """Return the metadata file that the metastore names for a table."""

    @abstractmethod
    def name_first(self, name: TableName, address: str, metadata: TableMetadata) -> bool:
        """Add a table with the address of its first metadata file; return False if the table
        exists.
        """

    @abstractmethod
    def name_next(
        self, name: TableName, old: str, new: str, base: TableMetadata, metadata: TableMetadata
    ) -> bool:
        """Replace the address ``old`` of the metadata file by ``new``.

        Return False if ``old`` is no longer the current address. ``base`` and ``metadata`` are the
        contents of the two files.
        """

    @abstractmethod
    def _forget(self, name: TableName, address: str | None) -> None:
        """Remove a table from the metastore; its files are kept.

        A SQL database raises ``CommitConflictError`` if ``address`` is no longer the address of the
        table's metadata file; None skips this check. Hive and Glue cannot check it.
        """

    def pointer(self, name: TableName) -> CatalogPointer:
        """Return the pointer that reads and publishes the metadata of a table through this
        metastore.
        """
        return CatalogPointer(self, name, self._files)

    def require_writable(self) -> None:
        """Do nothing: this version can write the tables of this metastore."""

    def make_table(self, name: TableName, describe: Describe) -> bool:
        """Write the first metadata file of a table, and add the table to the metastore.

        If the table exists, return False and delete the file. Raise ``AlreadyExistsError`` if the
        directory has a Paimon table: each of the two tables would delete files of the other.
        """
        location = f"{self._location_of(name.database)}/{name.table}"
        places, metadata = self._files.new_places(str(name), location), describe(location)
        if table_exists(places.storage, TableLayout(places.root)):
            if name.table in self.tables(name.database):  # such as a published Paimon table
                return False
            raise AlreadyExistsError(
                f"the directory of '{name}', {places.uri}, holds a Paimon table, so no Iceberg "
                "table was created there: choose another name"
            )
        if self.has_refused_paths(name, places, metadata):
            return False
        address, written = write_catalog_file(places, metadata, None, self._environment)
        return _keep_if(places, address, lambda: self.name_first(name, address, written.metadata))

    def publish(
        self, name: TableName, current: Answer, base: LoadedMetadata, metadata: TableMetadata
    ) -> tuple[Answer, LoadedMetadata] | None:
        """Write a metadata file, make it the current one, and return its address and content.

        Return None if another writer was first; then the file is deleted.
        """
        places, old = base.places, current.metadata_file
        address, written = write_catalog_file(places, metadata, base.path, self._environment)

        def name_it() -> bool:
            return self.name_next(name, old, address, base.metadata, metadata)

        if not _keep_if(places, address, name_it):
            return None
        delete_old_metadata(base, written)
        return Answer(address), written

    def remove_table(
        self, name: TableName, *, purge: bool, known: LoadedMetadata | None = None
    ) -> None:
        """Remove a table from the metastore; the caller deletes the files.

        Raise ``CommitConflictError`` if the name now belongs to another table than ``known``.
        """
        if known is None:
            return self._forget(name, None)
        answer = self.answer(name)
        found = self._files.load(str(name), answer, known)
        if found.metadata.table_uuid != known.metadata.table_uuid:
            raise changed_meanwhile(name)
        self._forget(name, answer.metadata_file)

    def remove_new_table(self, name: TableName) -> bool:
        """Remove a table without snapshots, and return True.

        If the table has a snapshot by now, keep it and return False.
        """
        answer = self.answer(name)
        if self._files.load(str(name), answer, None).metadata.snapshots:
            return False
        try:
            self._forget(name, answer.metadata_file)
        except CommitConflictError:
            return False
        return True

    def _is_named(self, name: TableName, new: str, lost: UnavailableError) -> bool:
        """Return True if ``new`` became the metadata file of a table before the answer was lost.

        If it did not, or if the metastore cannot be read, raise ``CommitOutcomeUnknownError``. Its
        message quotes ``lost``, the error of the lost answer.
        """
        with suppress(LakeError):
            if self._was_named(name, new):
                return True
        raise _unknown(name, new, str(lost)) from None

    def _was_named(self, name: TableName, file: str) -> bool:
        """Return True if ``file`` is the current metadata file of a table, or one in its metadata
        log.

        If the log no longer reaches back to the commit that wrote ``file``, and the snapshot of
        this commit may have expired, raise ``CommitOutcomeUnknownError``.
        """
        answer = self.answer(name)
        if answer.metadata_file == file:
            return True
        now = self._files.load(str(name), answer, None).metadata
        logged = {entry.metadata_file for entry in now.metadata_log}
        if file in logged:
            return True
        if self._may_have_expired(name, replace(answer, metadata_file=file), now):
            raise _unknown(
                name,
                file,
                "the metadata log no longer reaches back to this commit, and its snapshot may have "
                "expired.",
            )
        return False

    def _may_have_expired(self, name: TableName, written: Answer, now: TableMetadata) -> bool:
        """Return True if the commit that wrote a metadata file may have been published, and its
        snapshot may have expired since.

        ``written`` names the file. ``now`` is the current metadata, whose log lacks the file.
        """
        try:
            sent = self._files.load(str(name), written, None).metadata
        except NotFoundError:  # a later commit may have deleted the file
            return True
        if any(entry in now.metadata_log for entry in sent.metadata_log[-1:]):
            return False
        newest = {each.snapshot_id for each in sent.snapshots[-1:]}
        if not newest or newest <= {each.snapshot_id for each in now.snapshots}:
            return False
        number = max(sent.last_sequence_number - 1, 0)
        before = replace(sent, snapshots=sent.snapshots[:-1], last_sequence_number=number)
        return misses_snapshots(now, before)

    def _location_of(self, database: str) -> str:
        """Return the URI of a database: its property ``location``, else its directory in the
        warehouse.
        """
        given = self.database_properties(database).get("location")
        if given:
            return given.rstrip("/")
        assert self._files.storage is not None
        nested = database.replace(".", "/") + self._ending
        return f"{location_at(self._files.storage, self._files.root)}/{nested}"


def _keep_if(places: FilePlaces, address: str, name_it: Callable[[], bool]) -> bool:
    """Call ``name_it``, which makes ``address`` the metadata file of a table, and return its
    result.

    If the result is False, or if a ``LakeError`` shows that nothing changed, delete the file. If
    the outcome is unknown, keep the file, because the metastore may name it.
    """
    storage, path = places.place(address)
    with kept_if_published(lambda: _discard(storage, path)):
        if name_it():
            return True
    _discard(storage, path)
    return False


def _unknown(name: TableName, file: str, reason: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"it is not known if {file} became the metadata file of table '{name}': "
        f"{sentence(reason)} If you committed with a CommitId, just retry: the change is published "
        "once. If not, look for the change in the table before you retry. No file was removed"
    )


def _discard(storage: Storage, path: str) -> None:
    try:
        storage.delete(path)
    except LakeError as error:
        _log.warning(
            "could not delete the unpublished metadata file %s: %s No table needs it: you can "
            "delete it",
            *(storage.uri(path), sentence(error)),
        )
