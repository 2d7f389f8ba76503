# SPDX-License-Identifier: Apache-2.0
"""Entries of published tables in a SQL database or a Hive metastore, which store only the address
of the metadata file.
"""

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
    """The row of a table in a SQL catalog, or its parameters in a Hive metastore."""

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
        """The name of the table and the address of its catalog, for messages."""
        return f"table '{self._name}' in {self._address}"

    def find(self) -> Named | None:
        """Return the address and the content of the metadata file that the catalog names.

        Return None if the catalog does not have the table. The content is None if the file is
        missing, or if it is not a published metadata file of this table.
        """
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
        """Return True if the catalog names the newest published file."""
        return one_spelling(named.address) == one_spelling(newest.metadata_file)

    def create(self, newest: LoadedMetadata) -> bool:
        """Add the table to the catalog, and its database if it is missing.

        Return False if the table exists.
        """
        if not self._has_database():
            self._metastore.make_database(self._name.database, {})
        return self._metastore.name_first(self._name, newest.metadata_file, newest.metadata)

    def _has_database(self) -> bool:
        """Return True if the database exists. Return False if it does not exist, or if the SQL
        database has no SQL tables yet.
        """
        try:
            return self._metastore.has_database(self._name.database)
        except NotFoundError:
            return False

    def move(self, named: Named, newest: LoadedMetadata) -> bool:
        """Make the metadata file of ``newest`` the current one, and return True.

        Return False if the catalog no longer names the file of ``named``.
        """
        before = named.metadata or newest.metadata
        return self._metastore.name_next(
            self._name, named.address, newest.metadata_file, before, newest.metadata
        )

    def remove(self) -> None:
        """Remove the table from the catalog; its files are kept."""
        self._metastore.remove_table(self._name, purge=False)
