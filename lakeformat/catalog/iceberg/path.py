# SPDX-License-Identifier: Apache-2.0
"""The path metastore: ``<warehouse>/<database>/<table>``, without any other list.

A directory of Paimon's databases, ``<database>.db``, is not a database here, so one warehouse can
hold tables of both formats.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.names import TableName, check_name, is_name
from lakeformat.catalog.table_format import is_iceberg
from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.paimon.layout import DATABASE_SUFFIX
from lakeformat.storage.empty_directory import remove_empty_directory
from lakeformat.storage.links import within

__all__ = ["PathMetastore"]


class PathMetastore(Metastore):
    """Databases and tables are directories of the warehouse."""

    is_directory = True

    def __init__(self, files: CatalogFiles, environment: Environment) -> None:
        assert files.storage is not None
        self._storage = files.storage
        self._root = files.root
        self._external_roots = files.external_roots
        self._environment = environment

    def databases(self) -> list[str]:
        """Return the directories of the warehouse, but not those of Paimon's databases."""
        return [
            entry.name
            for entry in self._storage.list(self._root)
            if entry.is_directory
            and is_name("database", entry.name)  # Paimon's have a dot
            and not is_iceberg(self._storage, entry.path)
        ]

    def has_database(self, database: str) -> bool:
        """Return True if the directory exists."""
        return self._storage.directory_exists(self._directory(database))

    def database_properties(self, database: str) -> dict[str, str]:
        """Return the location, the only property that a directory has."""
        return {"location": self._storage.uri(self._directory(database))}

    def make_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create the directory."""
        if properties:
            raise UnsupportedError(
                f"the path metastore cannot store properties of databases ({', '.join(properties)})"
                ": leave them out"
            )
        there = self.has_database(database)
        self._storage.make_directory(self._directory(database))
        return not there

    def remove_database(self, database: str) -> None:
        """Delete the directory if it is empty."""
        directory = self._directory(database)
        if not remove_empty_directory(self._storage, directory):
            names = [info.name for info in self._storage.list(directory)]
            raise InvalidRequestError(
                f"database {database!r} has no table, but other files: {', '.join(names[:5])}. "
                "Delete them first"
            )

    def tables(self, database: str) -> list[str]:
        """Return the directories of the database that have Iceberg metadata."""
        storage = self._storage
        return [
            entry.name
            for entry in storage.list(self._directory(database))
            if entry.is_directory and is_iceberg(within(storage, entry.path), entry.path)
        ]

    def pointer(self, name: TableName) -> DirectoryPointer:
        """Return the pointer of the directory."""
        check_name("table", name.table)
        root = f"{self._directory(name.database)}/{name.table}"
        return DirectoryPointer(
            within(self._storage, root), root, self._external_roots, self._environment
        )

    def _directory(self, database: str) -> str:
        if database.endswith(DATABASE_SUFFIX):
            raise InvalidRequestError(
                f"{database!r} is the directory of a database of Paimon tables: open the catalog "
                f"with format='paimon', and name the database {database.removesuffix('.db')!r}"
            )
        check_name("database", database)
        return f"{self._root}/{database}"
