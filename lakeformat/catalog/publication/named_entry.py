# SPDX-License-Identifier: Apache-2.0
"""Entries in catalogs that name a metadata file: they name the published files themselves."""

from __future__ import annotations

from lakeformat.catalog.iceberg.named_files import NamedFilesMetastore
from lakeformat.catalog.names import TableName
from lakeformat.errors import NotFoundError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import METADATA, read_metadata_file
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.publish.targets.entry import Named
from lakeformat.publish.versions import PublishedVersions
from lakeformat.storage.location import one_spelling

__all__ = ["NamedEntry"]


class NamedEntry:
    """A row of a SQL catalog, or the parameters of a table in a Hive metastore."""

    def __init__(
        self,
        metastore: NamedFilesMetastore,
        name: TableName,
        versions: PublishedVersions,
        address: str,
    ) -> None:
        self._metastore = metastore
        self._name = name
        self._versions = versions
        self._address = address

    @property
    def name(self) -> str:
        """The table and its catalog."""
        return f"table '{self._name}' in {self._address}"

    def find(self) -> Named | None:
        """Return the file that the catalog names, and its content if it is a published one."""
        try:
            address = self._metastore.answer(self._name).metadata_file
        except NotFoundError:
            return None
        return Named(address, self._content(address))

    def _content(self, address: str) -> TableMetadata | None:
        versions = self._versions
        path = versions.places.path_below(address)
        if path is None or path.rpartition("/")[0] != f"{versions.root}/{METADATA}":
            return None
        try:
            return read_metadata_file(versions.storage, path)
        except NotFoundError:
            return None

    def shows(self, named: Named, newest: LoadedMetadata) -> bool:
        """Return True if the catalog names the newest file."""
        return one_spelling(named.address) == one_spelling(newest.metadata_file)

    def create(self, newest: LoadedMetadata) -> bool:
        """Add the table, and its database if it is missing."""
        if not self._has_database():
            self._metastore.make_database(self._name.database, {})
        return self._metastore.name_first(self._name, newest.metadata_file, newest.metadata)

    def _has_database(self) -> bool:
        """Return False also for a SQL database that no catalog has used yet."""
        try:
            return self._metastore.has_database(self._name.database)
        except NotFoundError:
            return False

    def move(self, named: Named, newest: LoadedMetadata) -> bool:
        """Name the newest file, if the catalog still names the one that was found."""
        before = named.metadata or newest.metadata
        return self._metastore.name_next(
            self._name, named.address, newest.metadata_file, before, newest.metadata
        )

    def remove(self) -> None:
        """Remove the table from the catalog."""
        self._metastore.remove_table(self._name, purge=False)
