"""The file-system catalog: databases and tables are directories, nothing else is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, NotFoundError
from lakeformat.layout import DATABASE_SUFFIX, TableLayout, database_directory, table_directory
from lakeformat.metadata.schema_file import create_schema, table_exists
from lakeformat.schema import ColumnList, new_schema
from lakeformat.storage import Storage, open_storage
from lakeformat.table import Table, load_table

__all__ = ["Catalog", "open_catalog"]

_NAME = re.compile(r"[^\s./\\$%:*?\"<>|][^./\\$%:*?\"<>|]*")


def open_catalog(warehouse: str, *, environment: Environment = SYSTEM) -> Catalog:
    """The catalog of a warehouse: a local path, ``file://`` or ``memory://`` URI."""
    storage, root = open_storage(warehouse)
    return Catalog(storage, root, environment)


class Catalog:
    """Databases and tables below one warehouse directory."""

    def __init__(self, storage: Storage, root: str, environment: Environment = SYSTEM) -> None:
        self._storage = storage
        self._root = root
        self._environment = environment

    def __repr__(self) -> str:
        return f"<Catalog {self.location}>"

    @property
    def location(self) -> str:
        """The warehouse, for people and other programs."""
        return self._storage.uri(self._root)

    def create_database(self, name: str, *, exist_ok: bool = False) -> None:
        """Make a database."""
        directory = self._database_directory(name)
        if self._storage.directory_exists(directory) and not exist_ok:
            raise AlreadyExistsError(
                f"database {name!r} exists in {self.location}; pass exist_ok=True to accept that"
            )
        self._storage.make_directory(directory)

    def list_databases(self) -> list[str]:
        """Names of all databases."""
        entries = self._storage.list(self._root)
        return [
            entry.name.removesuffix(DATABASE_SUFFIX)
            for entry in entries
            if entry.is_directory and entry.name.endswith(DATABASE_SUFFIX)
        ]

    def list_tables(self, database: str) -> list[str]:
        """Names of all tables of a database."""
        directory = self._existing_database(database)
        return [
            entry.name
            for entry in self._storage.list(directory)
            if entry.is_directory and table_exists(self._storage, TableLayout(entry.path))
        ]

    def create_table(
        self,
        name: str,
        schema: ColumnList,
        *,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Make an append table ``database.table``; ``exist_ok`` returns an existing one."""
        layout = self._layout(name)
        first = new_schema(
            schema,
            options=options,
            comment=comment,
            time_millis=self._environment.now_millis(),
        )
        taken = table_exists(self._storage, layout)
        created = not taken and create_schema(self._storage, layout, first)
        if not created and not exist_ok:
            raise AlreadyExistsError(
                f"table {name!r} exists in {self.location}; pass exist_ok=True to get it as it is"
            )
        return load_table(self._storage, layout, self._environment)

    def table(self, name: str) -> Table:
        """Open ``database.table``."""
        layout = self._layout(name)
        if not table_exists(self._storage, layout):
            raise NotFoundError(f"table {name!r} does not exist in {self.location}")
        return load_table(self._storage, layout, self._environment)

    def _layout(self, name: str) -> TableLayout:
        database, table = _split(name)
        self._existing_database(database)
        return TableLayout(table_directory(self._root, database, table))

    def _existing_database(self, name: str) -> str:
        directory = self._database_directory(name)
        if not self._storage.directory_exists(directory):
            raise NotFoundError(
                f"database {name!r} does not exist in {self.location}; "
                f"make it with create_database({name!r})"
            )
        return directory

    def _database_directory(self, name: str) -> str:
        _check_name("database", name)
        return database_directory(self._root, name)


def _split(name: str) -> tuple[str, str]:
    database, dot, table = name.partition(".")
    if not dot:
        raise InvalidRequestError(f"a table is named 'database.table', got {name!r}")
    _check_name("table", table)
    return database, table


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidRequestError(
            f"{what} name {name!r} is not allowed: it becomes a directory, so it must not be "
            'empty, begin with a space or hold any of . / \\ $ % : * ? " < > |'
        )
