# SPDX-License-Identifier: Apache-2.0
"""Finds the directories of the databases and tables of a catalog, and checks their names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lakeformat.catalog.leftovers import has_leftovers
from lakeformat.catalog.names import TableName, check_name, parse_name, refuse_system_database
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.outside import location_in, refuse_places_of_tables
from lakeformat.catalog.table_format import explain_missing
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout, database_directory
from lakeformat.paimon.metadata.branch_directory import require_branch
from lakeformat.paimon.table import Table
from lakeformat.storage import Storage
from lakeformat.storage.links import within
from lakeformat.types.closest import closest

__all__ = ["CatalogPlaces"]


class CatalogPlaces(ABC):
    """The databases and tables of one warehouse, with the storage and the directory of each."""

    table_class = Table
    """The class of the catalog's tables. Its attribute ``instead`` has advice for each operation
    that the format lacks.
    """

    def __init__(
        self,
        storage: Storage,
        root: str,
        environment: Environment = SYSTEM,
        options: CatalogOptions | None = None,
    ) -> None:
        self._storage = storage
        self._root = root
        self._environment = environment
        self._options = options or CatalogOptions()
        self._external_roots = self._options.get(CatalogOptions.external_roots)
        self._publication = self._options.publication()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"

    @property
    def location(self) -> str:
        """The URI of the warehouse."""
        return self._storage.uri(self._root)

    @abstractmethod
    def list_databases(self) -> list[str]:
        """Return the names of all databases."""

    def _database_place(self, database: str) -> tuple[Storage, str]:
        return self._storage, database_directory(self._root, database)

    def _storage_of(self, database: str) -> Storage:
        return self._database_place(database)[0]

    def _publishing(self, name: TableName) -> Storage:
        """Return the storage through which a table publishes snapshots.

        In a SQL catalog this storage may take a lock.
        """
        return self._storage_of(name.database)

    def _layout(self, name: TableName) -> TableLayout:
        return TableLayout(f"{self._database_place(name.database)[1]}/{name.table}", name.branch)

    def _files_of(self, name: TableName) -> TableLayout:
        """Return the paths of a table's files.

        After an interrupted rename in a SQL catalog, the paths may still be in the old directory.
        """
        return self._layout(name)

    def _existing_table(self, name: TableName) -> TableLayout:
        self._require_database(name.database)
        layout = self._layout(name)
        if not self._is_listed(name):
            storage = within(self._storage_of(name.database), layout.root)
            raise explain_missing(storage, layout.root, self._not_listed(name))
        if name.branch != MAIN_BRANCH:
            require_branch(self._storage_of(name.database), layout)
        return layout

    def _require_listed(self, name: TableName) -> None:
        self._require_database(name.database)
        if not self._is_listed(name):
            raise self._not_listed(name)

    def prepare_clone(  # noqa: B027 - a catalog of directories has no such changes
        self, name: str, *, dry_run: bool
    ) -> None:
        """Finish an interrupted drop of the table ``name``, unless ``dry_run`` is True.

        Raise ``AlreadyExistsError`` if ``name`` is a view, or is used by an interrupted rename.
        """

    def _not_listed(self, name: TableName) -> NotFoundError:
        return NotFoundError(
            f"table '{name}' does not exist in {self.location}: list_tables({name.database!r}) "
            f"lists the tables there{self._names_like(name)}"
        )

    def _names_like(self, name: TableName) -> str:
        """Return the end of a message with the most similar table name; "" if no name is similar.

        This costs one list request.
        """
        storage, directory = self._database_place(name.database)
        with suppress(LakeError):
            tables = [info.name for info in storage.list(directory) if info.is_directory]
            others = [table for table in tables if table != name.table]  # it may have leftovers
            return closest(name.table, others, inside=f"{name.database}.")
        return ""

    def _require_droppable(self, name: TableName) -> None:
        """Raise ``NotFoundError`` if there is nothing to drop.

        A table can be dropped if the catalog lists it, or if its directory has files of an earlier
        table.
        """
        self._require_database(name.database)
        if self._is_listed(name) or not has_leftovers(
            self._storage_of(name.database), self._layout(name)
        ):
            self._require_listed(name)

    def _require_database(self, name: str) -> None:
        check_name("database", name)
        refuse_system_database(name)
        if not self._has_database(name):
            raise NotFoundError(
                f"database {name!r} does not exist in {self.location}; "
                f"create it with create_database({name!r}){self._databases_like(name)}"
            )

    def _databases_like(self, name: str) -> str:
        """Return the end of a message about a missing database, with the most similar name; "" if
        no name is similar.
        """
        return closest(name, self.list_databases())

    def _check_new(self, what: str, name: str) -> None:
        check_name(what, name)
        if what == "database":
            refuse_system_database(name)
        if name != name.lower() and not self._is_case_sensitive():
            raise InvalidRequestError(
                f"{what} name {name!r} has upper-case letters, but engines ignore case in this "
                "catalog: write it in lower case, or open the catalog with case-sensitive=true"
            )

    def _places_of_others(self, name: TableName) -> Iterator[tuple[str, Storage, TableLayout]]:
        for database in self.list_databases():
            storage = self._storage_of(database)
            for table in self._table_names(database):
                other = TableName(database, table)
                if other != name:
                    yield str(other), storage, self._files_of(other)

    def _stored_name(self, name: str) -> TableName:
        """Parse ``database.table``, and return it as the catalog stores and lists it."""
        return parse_name(name)

    @abstractmethod
    def _is_case_sensitive(self) -> bool: ...

    @abstractmethod
    def _has_database(self, name: str) -> bool: ...

    @abstractmethod
    def _table_names(self, database: str) -> list[str]: ...

    @abstractmethod
    def _is_listed(self, name: TableName) -> bool: ...

    def check_external_paths(self, name: str, addresses: Sequence[str]) -> None:
        """Raise ``InvalidRequestError`` for an external path that the table ``name`` must not use.

        The option ``external-roots`` must allow the path. The path must not contain the warehouse,
        or overlap with the directory of a database.
        """
        for address in addresses:
            self._external_roots.require(address, f"table {name!r}")
        self._refuse_places_of_tables(name, addresses)

    def _refuse_places_of_tables(self, table: str, addresses: Sequence[str]) -> None:
        if not addresses:
            return
        warehouse = location_in(self._storage, self._root)
        databases = [
            (database, location_in(*self._database_place(database)))
            for database in self.list_databases()
        ]
        for address in addresses:
            refuse_places_of_tables(table, address, warehouse, databases)
