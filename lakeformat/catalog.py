"""The file-system catalog: databases and tables are directories, nothing else is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, NotFoundError
from lakeformat.layout import (
    DATABASE_SUFFIX,
    MAIN_BRANCH,
    TableLayout,
    database_directory,
    table_directory,
)
from lakeformat.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.metadata.schema_file import alter_schema, create_schema, table_exists
from lakeformat.schema import ColumnList, new_schema
from lakeformat.schema_changes import SchemaChange
from lakeformat.schema_changes.table_rules import check_table
from lakeformat.storage import Storage, open_storage
from lakeformat.table import Table, load_table

__all__ = ["Catalog", "open_catalog"]

BRANCH_PREFIX = "branch_"
# A control character, a line end or half of a UTF-16 pair makes no directory that can be named.
_FORBIDDEN = r"./\\$%:*?\"<>|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NAME = re.compile(rf"[^\s{_FORBIDDEN}][^{_FORBIDDEN}]*")


def open_catalog(warehouse: str, *, environment: Environment = SYSTEM) -> Catalog:
    """The catalog of a warehouse: a local path, ``file://`` or ``memory://`` URI."""
    if not isinstance(warehouse, str | os.PathLike):
        raise InvalidRequestError(f"a warehouse is a path or URI, got {warehouse!r}")
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
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Make a table ``database.table``; ``exist_ok`` returns an existing one as it is.

        Columns of the primary key become NOT NULL. This version writes rows to append tables
        without partitions and buckets; the others are for other engines to write and us to read.
        """
        layout = self._layout(_parse_plain(name))
        first = new_schema(
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            options=options,
            comment=comment,
            time_millis=self._environment.now_millis(),
        )
        check_table(first)
        taken = table_exists(self._storage, layout)
        created = not taken and create_schema(self._storage, layout, first)
        if not created and not exist_ok:
            raise AlreadyExistsError(
                f"table {name!r} exists in {self.location}; pass exist_ok=True to get it as it is"
            )
        return load_table(self._storage, layout, self._environment)

    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Change the schema of ``database.table`` or of a branch: all of the changes or none.

        Changes are made with ``add_column``, ``set_option`` and their siblings, and are checked
        in their order. Data files stay as they are and are read as the new schema says.
        """
        parsed = _parse(name)
        if parsed.system_table is not None:
            raise InvalidRequestError(f"{name!r} is a system table: its columns are what they are")
        if not changes:
            raise InvalidRequestError(f"say what to change in {name!r}, such as add_column(…)")
        layout = self._existing_table(parsed)
        alter_schema(self._storage, layout, changes, self._environment)
        return load_table(self._storage, layout, self._environment)

    def table(self, name: str) -> Table:
        """Open ``database.table``, its branch ``…$branch_dev`` or its metadata, ``…$files``."""
        parsed = _parse(name)
        found = load_table(self._storage, self._existing_table(parsed), self._environment)
        return found if parsed.system_table is None else found.system_table(parsed.system_table)

    def _existing_table(self, name: _TableName) -> TableLayout:
        layout = self._layout(name)
        if not table_exists(self._storage, layout.on_branch(MAIN_BRANCH)):
            raise NotFoundError(
                f"table '{name.database}.{name.table}' does not exist in {self.location}"
            )
        if name.branch != MAIN_BRANCH:
            require_branch(self._storage, layout)
        return layout

    def _layout(self, name: _TableName) -> TableLayout:
        self._existing_database(name.database)
        return TableLayout(table_directory(self._root, name.database, name.table), name.branch)

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


@dataclass(frozen=True, slots=True)
class _TableName:
    """``database.table[$branch_<branch>][$<system table>]``."""

    database: str
    table: str
    branch: str = MAIN_BRANCH
    system_table: str | None = None


def _parse(name: str) -> _TableName:
    if not isinstance(name, str):
        raise InvalidRequestError(f"a table is named 'database.table', got {name!r}")
    database, dot, rest = name.partition(".")
    if not dot:
        raise InvalidRequestError(f"a table is named 'database.table', got {name!r}")
    table, *suffixes = rest.split("$")
    _check_name("table", table)
    branch = MAIN_BRANCH
    if suffixes and suffixes[0].startswith(BRANCH_PREFIX):
        branch = suffixes.pop(0).removeprefix(BRANCH_PREFIX)
        check_branch_name(branch)
    if len(suffixes) > 1:
        raise InvalidRequestError(
            f"{name!r} is no table: after the table come '$branch_<branch>' and '$<system table>'"
        )
    return _TableName(database, table, branch, suffixes[0] if suffixes else None)


def _parse_plain(name: str) -> _TableName:
    """A name that can be given to a new table."""
    parsed = _parse(name)
    if parsed.branch != MAIN_BRANCH or parsed.system_table is not None:
        raise InvalidRequestError(f"{name!r} names a branch or a system table, not a new table")
    return parsed


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            f"{what} name {name!r} is not allowed: it becomes a directory, so it must not be "
            "empty, begin with a space or hold a control character or any of "
            '. / \\ $ % : * ? " < > |'
        )
