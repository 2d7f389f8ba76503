"""The filesystem catalog: databases and tables are directories, nothing else is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.drop import SCHEMA_DIRECTORY, DropPlan, run_drop
from lakeformat.catalog.names import TableName, parse_plain_name
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.report import RepairReport
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, UnsupportedError
from lakeformat.layout import DATABASE_SUFFIX, TableLayout
from lakeformat.metadata.schema_file import alter_schema, create_schema, table_exists
from lakeformat.schema import TableSchema
from lakeformat.schema_changes import SchemaChange
from lakeformat.storage.move_directory import move_directory, mover

__all__ = ["FileSystemCatalog"]


class FileSystemCatalog(Catalog):
    """What is there is what the warehouse directory holds."""

    def list_databases(self) -> list[str]:
        """Names of all databases."""
        return [
            entry.name.removesuffix(DATABASE_SUFFIX)
            for entry in self._storage.list(self._root)
            if entry.is_directory and entry.name.endswith(DATABASE_SUFFIX)
        ]

    def database_properties(self, name: str) -> dict[str, str]:
        """Where it lies; a directory says no more."""
        self._require_database(name)
        storage, directory = self._database_place(name)
        return {"location": storage.uri(directory)}

    def alter_database(
        self, name: str, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Refused: a directory has no properties."""
        self._require_database(name)
        _refuse_properties([*(set or {}), *remove])

    def repair(self, name: str | None = None) -> RepairReport:
        """Nothing to do: the directories are the catalog."""
        if name is not None and "." in name:
            self._existing_table(parse_plain_name(name))
        elif name is not None:
            self._require_database(name)
        return RepairReport()

    def _is_case_sensitive(self) -> bool:
        return self._options.get_or(CatalogOptions.case_sensitive, True)

    def _has_database(self, name: str) -> bool:
        storage, directory = self._database_place(name)
        return storage.directory_exists(directory)

    def _make_database(self, name: str, properties: dict[str, str]) -> bool:
        if properties:
            _refuse_properties([*properties])
        there = self._has_database(name)
        storage, directory = self._database_place(name)
        storage.make_directory(directory)
        return not there

    def _check_remove_database(self, name: str, *, cascade: bool) -> None:
        storage, directory = self._database_place(name)
        strangers = [] if cascade else [info.name for info in storage.list(directory)]
        if strangers:
            raise InvalidRequestError(
                f"database {name!r} holds no table, but other files: {', '.join(strangers[:5])}; "
                "remove them, or pass cascade=True"
            )

    def _remove_database(self, name: str) -> None:
        storage, directory = self._database_place(name)
        storage.delete_directory(directory)

    def _table_names(self, database: str) -> list[str]:
        storage, directory = self._database_place(database)
        return [
            entry.name
            for entry in storage.list(directory)
            if entry.is_directory and table_exists(storage, TableLayout(entry.path))
        ]

    def _is_listed(self, name: TableName) -> bool:
        return table_exists(self._storage, TableLayout(self._layout(name).root))

    def _make_table(self, name: TableName, schema: TableSchema, *, exist_ok: bool) -> bool:
        if self._is_listed(name):
            return False
        return create_schema(self._storage, self._layout(name), schema)

    def _change_schema(
        self, name: TableName, layout: TableLayout, changes: tuple[SchemaChange, ...]
    ) -> None:
        alter_schema(self._storage, layout, changes, self._environment)

    def _remove_table(self, name: TableName, plan: DropPlan) -> None:
        self._check_planned(name, plan)
        run_drop(self._storage, self._layout(name), plan)

    def _move_table(
        self, old: TableName, new: TableName, source: TableLayout, target: TableLayout
    ) -> None:
        # Copies of an earlier try are listed too; those are compared file by file below.
        if mover(self._storage) is not None and self._is_listed(new):
            raise AlreadyExistsError(f"table '{new}' exists in {self.location}: '{old}' stays")
        move_directory(self._storage, source.root, target.root, last=SCHEMA_DIRECTORY)


def _refuse_properties(keys: list[str]) -> NoReturn:
    raise UnsupportedError(
        f"the filesystem catalog keeps no properties of databases: {', '.join(keys)} cannot be "
        "kept; use the jdbc metastore"
    )
