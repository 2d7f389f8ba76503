# SPDX-License-Identifier: Apache-2.0
"""The filesystem catalog: each database is a directory ``<name>.db``, each table a directory
in it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.drop import SCHEMA_DIRECTORY, DropPlan, run_drop
from lakeformat.catalog.leftovers import refuse_leftovers, remove_dropped
from lakeformat.catalog.names import TableName, is_name, parse_plain_name
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.table_format import sign_of_another_kind
from lakeformat.catalog.texts import require_keys, require_texts
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    UnsupportedError,
)
from lakeformat.paimon.layout import DATABASE_SUFFIX, TableLayout
from lakeformat.paimon.metadata.schema_file import create_schema, table_exists
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changes import SchemaChange
from lakeformat.storage import FileInfo, Storage
from lakeformat.storage.empty_directory import keep_directory, remove_empty_directory
from lakeformat.storage.links import is_link, within
from lakeformat.storage.move_directory import is_moving, move_directory, mover
from lakeformat.tables.table import offer_arguments

if TYPE_CHECKING:
    from lakeformat.catalog.repair_report import RepairReport
    from lakeformat.paimon.table import Table

__all__ = ["FileSystemCatalog"]

_log = logging.getLogger(__name__)


@offer_arguments
class FileSystemCatalog(Catalog):
    """A catalog whose databases and tables are directories of the warehouse."""

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        return [
            entry.name.removesuffix(DATABASE_SUFFIX)
            for entry in self._storage.list(self._root)
            if entry.is_directory
            and entry.name.endswith(DATABASE_SUFFIX)
            and not entry.name.startswith(".")
        ]

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the location of a database; a directory has no other properties.

        A missing database raises ``NotFoundError``.
        """
        self._require_database(name)
        storage, directory = self._database_place(name)
        return {"location": storage.uri(directory)}

    def alter_database(
        self, name: str, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Raise ``NotFoundError`` for a missing database, and ``UnsupportedError`` if ``set`` or
        ``remove`` has a key: a directory has no properties that you can change.
        """
        self._require_database(name)
        if keys := [*require_texts("set", set), *require_keys("remove", remove)]:
            _refuse_properties(keys)

    def repair(self, name: str | None = None) -> RepairReport:
        """Delete the hidden directories that interrupted drops left, and report their names.

        ``name`` is a database; None repairs all databases. The report also lists the damaged
        tables. These are tables whose own name, or whose database's name, is not allowed.

        If ``name`` is a table ``database.table``, nothing is repaired. A missing database or table
        raises ``NotFoundError``.
        """
        from lakeformat.catalog.repair_report import RepairReport

        given: object = name
        if name is not None and (not isinstance(given, str) or "." in name):
            self._existing_table(parse_plain_name(name))
            return RepairReport()
        if name is not None:
            self._require_database(name)
        report = RepairReport()
        for database in self.list_databases() if name is None else [name]:
            report += self._repair_database(database)
        return report

    def _repair_database(self, database: str) -> RepairReport:
        from lakeformat.catalog.repair_report import RepairReport

        storage, directory = self._database_place(database)
        dropped = remove_dropped(storage, directory)
        tables = self._table_names(database)
        return RepairReport(
            dropped=tuple(f"{database}.{hidden}" for hidden in dropped),
            damaged=tuple(
                f"{database}.{table}"
                for table in tables
                if not (is_name("database", database) and is_name("table", table))
            ),
        )

    def _is_case_sensitive(self) -> bool:
        return self._options.get_or(CatalogOptions.case_sensitive, True)

    def _has_database(self, name: str) -> bool:
        storage, directory = self._database_place(name)
        return storage.directory_exists(directory)

    def _databases_like(self, name: str) -> str:
        if self._storage.directory_exists(f"{self._root}/{name}"):
            return (
                f"; or, if the directory {name!r} (without {DATABASE_SUFFIX!r}) has Iceberg "
                "tables, open the catalog with format='iceberg'"
            )
        return super()._databases_like(name)

    def _make_database(self, name: str, properties: dict[str, str]) -> bool:
        if properties:
            _refuse_properties([*properties])
        there = self._has_database(name)
        storage, directory = self._database_place(name)
        storage.make_directory(directory)
        return not there

    def _plans(self, name: str, *, cascade: bool) -> list[tuple[TableName, DropPlan]]:
        storage, directory = self._database_place(name)
        if is_link(storage, directory):
            return []  # a link: only the link is deleted
        plans = super()._plans(name, cascade=cascade)
        if cascade and (strangers := self._strangers(name)):
            _log.warning(
                "The drop of database %r also deletes files that belong to none of its tables: %s",
                name,
                _some_names(strangers),
            )
        return plans

    def _strangers(self, name: str) -> list[FileInfo]:
        """Return the files and directories in the directory of a database that are not tables.

        A link counts as a file, even if it is broken. Raise ``InvalidRequestError`` for a directory
        that has a table of another format.
        """
        storage, directory = self._database_place(name)
        found = [
            info
            for info in within(storage, directory).list(directory)
            if not (info.is_directory and table_exists(storage, TableLayout(info.path)))
        ]
        for info in found:
            if info.is_directory:
                _refuse_another_kind(storage, info.path, name)
        return found

    def _check_remove_database(self, name: str, *, cascade: bool) -> None:
        storage, directory = self._database_place(name)
        if cascade or is_link(storage, directory):
            return
        remove_dropped(storage, directory)
        if strangers := self._strangers(name):
            raise InvalidRequestError(
                f"database {name!r} has no table, but other files: {_some_names(strangers)}. "
                "Delete them, or pass cascade=True"
            )

    def _remove_database(self, name: str, *, cascade: bool) -> None:
        storage, directory = self._database_place(name)
        if is_link(storage, directory):
            storage.delete(directory)
            return
        remove_dropped(storage, directory)
        for info in self._strangers(name) if cascade else []:
            if info.is_directory:
                storage.delete_directory(info.path)
            else:
                storage.delete(info.path)
        if remove_empty_directory(storage, directory):
            return
        self.plan_drop_database(name)  # raises an error that names a table created meanwhile
        self._check_remove_database(name, cascade=False)
        raise CommitConflictError(
            f"database {name!r} was not dropped: another program wrote files in it meanwhile, or a "
            "drop of a table is not finished (see the log warning). Drop the database again"
        )

    def _table_names(self, database: str) -> list[str]:
        storage, directory = self._database_place(database)
        return [
            entry.name
            for entry in storage.list(directory)
            if entry.is_directory
            and not entry.name.startswith(".")  # a hidden directory: an interrupted drop
            and table_exists(storage, TableLayout(entry.path))
        ]

    def _likely_tables(self, database: str) -> set[str]:
        """Return the names of all directories of a database, without a check that they are
        tables.
        """
        storage, directory = self._database_place(database)
        return {entry.name for entry in storage.list(directory) if entry.is_directory}

    def _is_listed(self, name: TableName) -> bool:
        return table_exists(self._storage, TableLayout(self._layout(name).root))

    def _make_table(self, name: TableName, schema: TableSchema, *, exist_ok: bool) -> bool:
        if self._is_listed(name):
            return False
        refuse_leftovers(self._storage, self._layout(name), name)
        return create_schema(self._storage, self._layout(name), schema)

    def _change_schema(
        self, name: TableName, layout: TableLayout, changes: tuple[SchemaChange, ...]
    ) -> None:
        self._alter_schema(self._storage, layout, changes)

    def _remove_table(self, name: TableName, plan: DropPlan) -> None:
        self._check_planned(name, plan)
        keep_directory(*self._database_place(name.database))
        run_drop(self._storage, self._layout(name), plan, self._environment.new_id)

    def rename_table(self, old: str, new: str, *, force: bool = False) -> Table:
        """Rename a table like ``Catalog.rename_table``, or finish an interrupted rename in an
        object store.
        """
        source, target = parse_plain_name(old), parse_plain_name(new)
        if not force or not self._is_half_moved(source, target):
            return super().rename_table(old, new, force=force)
        from lakeformat.paimon.branches.observed import observe_all

        self._move_table(source, target, self._layout(source), self._layout(target))
        renamed = self.table(new)
        before = replace(renamed._handle, layout=self._layout(source))
        if (published := self._publication.withdrawal(before, renamed._handle)) is not None:
            published.run()
        observe_all(renamed._handle)
        return renamed

    def _move_table(
        self, old: TableName, new: TableName, source: TableLayout, target: TableLayout
    ) -> None:
        # This also lists the copies that an earlier attempt made.
        if self._is_listed(new) and (
            mover(self._storage) is not None
            or not is_moving(self._storage, source.root, target.root)
        ):
            raise AlreadyExistsError(
                f"cannot rename '{old}': table '{new}' exists in {self.location}. Choose another "
                "name"
            )
        keep_directory(*self._database_place(old.database))
        move_directory(self._storage, source.root, target.root, last=SCHEMA_DIRECTORY)

    def _is_half_moved(self, old: TableName, new: TableName) -> bool:
        """Return True if an interrupted rename has copied the table and deleted its old schemas.

        The mark of the rename is left, and maybe other files of the old table.
        """
        storage, source, target = self._storage, self._layout(old), self._layout(new)
        return (
            mover(storage) is None
            and is_moving(storage, source.root, target.root)
            and not self._is_listed(old)
            and self._is_listed(new)
        )


def _refuse_another_kind(storage: Storage, directory: str, database: str) -> None:
    if (sign := sign_of_another_kind(storage, directory)) is not None:
        raise InvalidRequestError(
            f"database {database!r} was not dropped: {storage.uri(directory)} is a table of "
            f"another format ({sign}). Drop this table with the program that created it, or move "
            "the directory away"
        )


def _some_names(found: Sequence[FileInfo]) -> str:
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return ", ".join(info.name for info in found[:5]) + more


def _refuse_properties(keys: list[str]) -> NoReturn:
    raise UnsupportedError(
        f"the filesystem catalog cannot store properties of databases ({', '.join(keys)}): leave "
        "them out, or use the jdbc metastore"
    )
