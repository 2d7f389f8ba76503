# SPDX-License-Identifier: Apache-2.0
"""The contract of a metastore: it lists databases and tables, and names their metadata files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

from lakeformat.catalog.names import TableName
from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.data_paths import refuse_data_in_tables
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import METADATA_PATH
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["Describe", "Metastore", "changed_meanwhile"]

Describe: TypeAlias = Callable[[str], TableMetadata]
"""A function that returns the metadata of a new table at a given location."""


class Metastore(ABC):
    """The list of databases and tables of one catalog.

    A method raises ``NotFoundError`` if a database or table that it needs does not exist.
    """

    is_directory: ClassVar[bool] = False
    deletes_files: ClassVar[bool] = True
    """True if ``remove_table`` deletes the files of a purged table; False if the caller deletes
    them.
    """

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
        """Create a database with these properties; return False if it exists."""

    @abstractmethod
    def remove_database(self, database: str) -> None:
        """Delete a database that has no tables."""

    def nested_databases(self, database: str) -> list[str]:
        """Return the full names of the nested databases that can prevent the deletion of
        ``database``.

        Only in a REST service can nested databases prevent it. Any other metastore returns an empty
        list.
        """
        return []

    @abstractmethod
    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""

    def has_refused_paths(self, name: TableName, places: FilePlaces, new: TableMetadata) -> bool:
        """Return True if ``new`` places data files in the directory of another table.

        If no table ``name`` exists yet, raise ``InvalidRequestError`` instead of returning True.
        """
        try:
            own = new.properties.get(METADATA_PATH)
            refuse_data_in_tables(places, new.properties, own, new.table_uuid)
        except InvalidRequestError:
            if name.table in self.tables(name.database):
                return True
            raise
        return False

    def stored_name(self, name: TableName) -> TableName:
        """Return ``name`` as the metastore stores it: in lower case in Hive and Glue."""
        return name

    @abstractmethod
    def pointer(self, name: TableName) -> MetadataPointer:
        """Return an object that reads and publishes the metadata of a table.

        The table need not exist yet.
        """

    def beside(self, base: TableName, table: str, database: str) -> TableName:
        """Return the full name of the change store ``table`` of the base store ``base``.

        ``database`` is the database that the base store records for the change store; "" stands for
        the database of ``base``.
        """
        return TableName(database or base.database, table)

    def pointer_beside(self, name: TableName, base: TableName) -> MetadataPointer:
        """Return what ``pointer`` returns, for the change store ``name`` of the table ``base``.

        A catalog of directories raises ``InvalidRequestError`` if the directory of one of the
        stores is a link, because a link can lead to another table.
        """
        return self.pointer(name)

    @abstractmethod
    def make_table(self, name: TableName, describe: Describe) -> bool:
        """Create a table with the metadata that ``describe`` returns for its location.

        Return False if the table exists.
        """

    def require_removable(  # noqa: B027 - most metastores remove any table
        self, name: TableName, *, purge: bool
    ) -> None:
        """Raise ``InvalidRequestError`` or ``UnsupportedError`` if ``remove_table`` would refuse
        the table.
        """

    @abstractmethod
    def remove_table(
        self, name: TableName, *, purge: bool, known: LoadedMetadata | None = None
    ) -> None:
        """Remove a table from the list.

        With ``purge`` also delete its files; but if ``deletes_files`` is False, the caller deletes
        the files. ``known`` is the earlier metadata of the table. If the table was recreated since,
        ``CommitConflictError`` is raised, and the new table is kept; a REST service does not check
        this.
        """

    def forget_leases(  # noqa: B027 - most metastores keep none
        self, table_uuid: str
    ) -> None:
        """Delete the leases that the metastore keeps for a dropped table."""

    def has_other_files(self, name: TableName) -> bool:
        """Return True if the table has files other than metadata.

        Only a metastore of directories looks for such files; any other metastore returns False.
        """
        return False

    def remove_new_table(self, name: TableName) -> bool:
        """Remove a table without snapshots, and return True.

        If the table has a snapshot by now, keep it and return False; a REST catalog removes the
        table without this check. A metastore of directories also keeps a table with files other
        than metadata.
        """
        self.remove_table(name, purge=False)
        return True

    def require_renamable(  # noqa: B027 - most metastores rename any table
        self, old: TableName, new: TableName
    ) -> None:
        """Raise ``UnsupportedError`` if the metastore cannot rename tables."""

    @abstractmethod
    def rename_table(self, old: TableName, new: TableName) -> None:
        """Rename a table; its files are not moved."""

    def more_about_missing(self) -> str:
        """Return the end of a message about a missing database, such as a hint; by default ""."""
        return ""

    def require_exists(self) -> None:  # noqa: B027 - a service or a directory is one catalog
        """Raise ``NotFoundError`` if the SQL database lacks the SQL tables of Iceberg catalogs.

        The same error is raised if these tables have only rows of other catalogs. Metastores other
        than a SQL database are not checked.
        """


def changed_meanwhile(name: TableName) -> CommitConflictError:
    """Return the error for a table that is not dropped, because another program changed it."""
    return CommitConflictError(
        f"table '{name}' was not dropped: another program changed, renamed, dropped or recreated "
        "it meanwhile. None of its files was deleted; check the table and drop it again"
    )
