# SPDX-License-Identifier: Apache-2.0
"""The contract of a metastore: it lists databases and tables, and points to their metadata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

from lakeformat.catalog.names import TableName
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["Describe", "Metastore"]

Describe: TypeAlias = Callable[[str], TableMetadata]
"""Returns the metadata of a new table for its address."""


class Metastore(ABC):
    """The list of databases and tables of one catalog.

    A method raises ``NotFoundError`` for a database or a table that does not exist.
    """

    is_directory: ClassVar[bool] = False
    deletes_files: ClassVar[bool] = True
    """True if ``remove_table`` takes ``purge``; False if the caller deletes the files."""

    @abstractmethod
    def databases(self) -> list[str]:
        """Return the names of the databases."""

    @abstractmethod
    def has_database(self, database: str) -> bool:
        """Return True if a database exists."""

    @abstractmethod
    def database_properties(self, database: str) -> dict[str, str]:
        """Return the properties of a database."""

    @abstractmethod
    def make_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create a database; return False if it exists."""

    @abstractmethod
    def remove_database(self, database: str) -> None:
        """Delete a database without tables."""

    @abstractmethod
    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""

    @abstractmethod
    def pointer(self, name: TableName) -> MetadataPointer:
        """Return the pointer to the metadata of a table, even if the table does not exist."""

    @abstractmethod
    def make_table(self, name: TableName, describe: Describe) -> bool:
        """Create a table; return False if it exists."""

    def require_removable(  # noqa: B027 - most metastores remove any table
        self, name: TableName, *, purge: bool
    ) -> None:
        """Raise if ``remove_table`` would refuse the table for its kind or its properties."""

    @abstractmethod
    def remove_table(self, name: TableName, *, purge: bool) -> None:
        """Remove a table from the list; with ``purge`` delete its files as well."""

    def remove_new_table(self, name: TableName) -> bool:
        """Remove a table without a snapshot; return False to keep it for its other files."""
        self.remove_table(name, purge=False)
        return True

    @abstractmethod
    def rename_table(self, old: TableName, new: TableName) -> None:
        """Give a table another name; its files are not moved."""

    def more_about_missing(self) -> str:
        """Return the end of a message about a missing database, from what the metastore knows."""
        return ""
