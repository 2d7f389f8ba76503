# SPDX-License-Identifier: Apache-2.0
"""Metastores that are reached with a client of PyIceberg: REST, Hive and Glue.

The client sends requests about names and metadata files, but parses no metadata: this library does
that, because PyIceberg refuses some tables that this library reads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from pyiceberg.exceptions import NamespaceAlreadyExistsError

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.client_failure import Failures
from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.iceberg.options import IcebergOptions
from lakeformat.catalog.names import TableName

__all__ = ["ClientMetastore", "parts_of"]

T = TypeVar("T")


class ClientMetastore(Metastore):
    """The databases and tables of a metastore that PyIceberg has a client for."""

    def __init__(self, options: IcebergOptions, files: CatalogFiles) -> None:
        self._options = options
        self._files = files
        self._failures = Failures(options.uri or options.metastore, options.secrets)

    @abstractmethod
    def _connect(self) -> Any:
        """Return a new client, a catalog of PyIceberg."""

    @abstractmethod
    def _find(self, client: Any, name: TableName, doing: str) -> Answer:
        """Return the metastore's answer about a table, with the address of the table's metadata
        file.

        ``doing`` names the request in error messages.
        """

    def databases(self) -> list[str]:
        """Return the names of the databases that are not nested."""
        found = self._ask("list the databases", lambda client: client.list_namespaces())
        return [".".join(each) for each in found]

    def has_database(self, database: str) -> bool:
        """Return True if a database exists."""
        place = parts_of(database)
        return self._ask(
            f"find database {database!r}", lambda client: bool(client.namespace_exists(place))
        )

    def database_properties(self, database: str) -> dict[str, str]:
        """Return the properties of a database."""
        return self._ask(
            f"read the properties of database {database!r}",
            lambda client: dict(client.load_namespace_properties(parts_of(database))),
        )

    def make_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create a database; return False if it exists."""

        def create(client: Any) -> bool:
            try:
                client.create_namespace(parts_of(database), dict(properties))
            except NamespaceAlreadyExistsError:
                return False
            return True

        return self._ask(f"create database {database!r}", create)

    def remove_database(self, database: str) -> None:
        """Delete a database that has no tables."""
        self._ask(
            f"drop database {database!r}", lambda client: client.drop_namespace(parts_of(database))
        )

    def tables(self, database: str) -> list[str]:
        """Return the names of the Iceberg tables of a database."""
        found = self._ask(
            f"list the tables of {database!r}",
            lambda client: client.list_tables(parts_of(database)),
        )
        return [each[-1] for each in found]

    def answer(self, name: TableName) -> Answer:
        """Return the metadata file of a table, and the storage options to read it."""
        doing = f"find table '{name}'"
        return self._ask(doing, lambda client: self._find(client, name, doing))

    @cached_property
    def _client(self) -> Any:
        return self._connect()

    def _ask(self, doing: str, question: Callable[[Any], T]) -> T:
        with self._failures.translated(doing):
            return question(self._client)


def parts_of(database: str) -> tuple[str, ...]:
    """Return the parts of the name of a nested database, the outermost first."""
    return tuple(database.split("."))
