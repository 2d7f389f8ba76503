# SPDX-License-Identifier: Apache-2.0
"""The base class of catalogs of Paimon tables; a subclass lists databases and tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.catalog.drop import DropPlan, plan_drop, refuse_shared_paths, require_planned
from lakeformat.catalog.names import (
    TableName,
    check_name,
    parse_name,
    parse_plain_name,
    refuse_system_database,
)
from lakeformat.catalog.outside import external_paths_in
from lakeformat.catalog.places import CatalogPlaces
from lakeformat.catalog.texts import require_mapping, require_texts
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.layout import TableLayout, database_directory
from lakeformat.paimon.schema import ColumnList, TableSchema, new_schema
from lakeformat.paimon.schema_changes.changes import SchemaChange
from lakeformat.paimon.schema_changes.table_rules import check_table
from lakeformat.paimon.table import Table, load_table
from lakeformat.storage import Storage
from lakeformat.storage.links import within
from lakeformat.storage.move_directory import mover
from lakeformat.types.amounts import Setting

if TYPE_CHECKING:
    from lakeformat.catalog.repair_report import RepairReport
    from lakeformat.paimon.options.profile import Profile
    from lakeformat.publish.targets.withdraw import NoWithdrawal, Withdrawal

__all__ = ["Catalog"]


class Catalog(CatalogPlaces):
    """The databases and tables of one warehouse."""

    # ------------------------------------------------------------------ databases

    @abstractmethod
    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database, including its location.

        A missing database raises ``NotFoundError``.
        """

    def require_exists(self) -> None:
        """Raise ``NotFoundError`` if the SQL database of this catalog has only other catalogs.

        A SQL database without catalogs, and a catalog of directories, raise no error.
        """

    def create_database(
        self, name: str, *, exist_ok: bool = False, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database.

        If it exists, ``AlreadyExistsError`` is raised, or with ``exist_ok`` nothing changes. A
        catalog of directories cannot store ``properties`` and raises ``UnsupportedError``.
        """
        self._check_new("database", name)
        if not self._make_database(name, require_texts("properties", properties)) and not exist_ok:
            raise AlreadyExistsError(f"database {name!r} exists: pass exist_ok=True to accept that")

    @abstractmethod
    def alter_database(
        self, name: str, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Set the properties in ``set``, and remove the properties whose keys are in ``remove``.

        A catalog of directories has no properties to change, and raises ``UnsupportedError`` for
        any key. A missing database raises ``NotFoundError``.
        """

    def plan_drop_database(self, name: str, *, cascade: bool = False) -> list[DropPlan]:
        """Return a plan for each table that ``drop_database`` would drop; nothing is deleted.

        Without ``cascade`` a database with tables raises ``InvalidRequestError``. A missing
        database raises ``NotFoundError``.
        """
        return [plan for _, plan in self._plans(name, cascade=cascade)]

    def _plans(self, name: str, *, cascade: bool) -> list[tuple[TableName, DropPlan]]:
        self._require_database(name)
        tables = self._table_names(name)
        if tables and not cascade:
            from lakeformat.types.count_text import counted  # only for a message

            shown = ", ".join(tables[:5]) + (", …" if len(tables) > 5 else "")
            raise InvalidRequestError(
                f"database {name!r} in {self.location} has {counted(len(tables), 'table')}: "
                f"{shown}. Drop its tables first, or pass cascade=True"
            )
        names = [TableName(name, table) for table in tables]
        return [(table, self._plan_drop(table)) for table in names]

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Delete a database. With ``cascade`` its tables are dropped first, as by ``drop_table``.

        With ``cascade`` a catalog of directories deletes all other files of the database, too.
        Without ``cascade`` a database with tables raises ``InvalidRequestError``. A missing
        database raises ``NotFoundError``, unless ``missing_ok`` is True.
        """
        check_name("database", name)
        refuse_system_database(name)
        if missing_ok and not self._has_database(name):
            return
        plans = self._plans(name, cascade=cascade)
        self._check_remove_database(name, cascade=cascade)
        for table, plan in plans:  # also drops tables whose names a new table could not have
            self._remove_published(table, plan)
        self._remove_database(name, cascade=cascade)

    # ------------------------------------------------------------------ tables

    def list_tables(self, database: str) -> list[str]:
        """Return the names of all tables of a database, without the name of the database.

        A missing database raises ``NotFoundError``.
        """
        self._require_database(database)
        return self._table_names(database)

    def create_table(
        self,
        name: str,
        schema: ColumnList,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, Setting] | None = None,
        profile: Profile | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create a table ``database.table`` and return it.

        If the table exists, ``AlreadyExistsError`` is raised, or with ``exist_ok`` the existing
        table is returned unchanged. A missing database raises ``NotFoundError``. Columns of the
        primary key become NOT NULL.

        ``docs/reference/options.md`` lists the options. ``profile="mixed"`` adds the options in
        ``docs/stream-and-batch.md``, for a table that both a stream and batches write; ``options``
        and the defaults of the catalog take precedence.
        """
        parsed = parse_plain_name(name)
        self._require_database(parsed.database)
        self._check_new("table", parsed.table)
        first = new_schema(
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            options={**self._options.table_defaults, **require_mapping("options", options)},
            profile=profile,
            comment=comment,
            time_millis=self._environment.now_millis(),
        )
        first = self._publication.publishable(first)
        check_table(first)
        self._publication.check_schema(first)
        self.check_external_paths(str(parsed), first.table_options.data_file_external_paths)
        if not self._make_table(parsed, first, exist_ok=exist_ok) and not exist_ok:
            raise AlreadyExistsError(
                f"table {name!r} exists in {self.location}: pass exist_ok=True to open it"
            )
        return self.table(name)

    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Change the schema of ``database.table`` or of a branch, and return the table.

        Make the changes with ``add_column``, ``set_option`` and so on. They are checked in their
        order, and all are made or none: a refused change raises a ``LakeError``, such as
        ``InvalidRequestError``. Data files do not change; readers convert old rows to the new
        schema.
        """
        parsed = parse_name(name)
        if parsed.system_table is not None:
            raise InvalidRequestError(
                f"{name!r} is a system table and cannot be altered: name the table itself"
            )
        if not changes:
            raise InvalidRequestError(
                f"no change of {name!r} is given: pass one or more, such as add_column(…)"
            )
        layout = self._existing_table(parsed)
        self.check_external_paths(str(parsed), external_paths_in(changes))
        self._change_schema(parsed, layout, changes)
        return self.table(name)

    def table(self, name: str) -> Table:
        """Open ``database.table``, its branch ``…$branch_dev``, or its system table ``…$files``.

        A missing database, table or branch raises ``NotFoundError``.
        """
        parsed = parse_name(name)
        layout = self._existing_table(parsed)
        found = load_table(
            self._publishing(parsed),
            layout,
            self._environment,
            self._external_roots,
            self._publication,
        )
        return found if parsed.system_table is None else found.system_table(parsed.system_table)

    def plan_drop_table(self, name: str) -> DropPlan:
        """Return what ``drop_table`` would delete, or raise the same error; nothing is deleted."""
        parsed = parse_plain_name(name)
        self._require_droppable(parsed)
        return self._plan_drop(parsed)

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Delete a table with its data, including its files in external paths.

        Files that a migration registered are kept. If the table is published, its entries in
        Iceberg catalogs are removed. A missing table raises ``NotFoundError``, unless
        ``missing_ok`` is True.
        """
        parsed = parse_plain_name(name)
        try:
            self._remove_published(parsed, self.plan_drop_table(name))
        except NotFoundError:
            if not missing_ok or self._is_listed(parsed):
                raise

    def drop_new_table(self, name: str) -> bool:
        """If the table has no snapshot, drop it and return True; else return False.

        A missing table raises ``NotFoundError``.
        """
        if self.table(name).latest_snapshot() is not None:
            return False
        plan = replace(self.plan_drop_table(name), is_new=True)
        with suppress(CommitConflictError):  # another program has written to it, or recreated it
            self._remove_published(parse_plain_name(name), plan)
            return True
        return False

    def rename_table(self, old: str, new: str, *, force: bool = False) -> Table:
        """Rename a table, in the same database or into another one, and return it.

        An object store cannot rename a directory. There ``force=True`` is required: each file is
        copied to the new name and then deleted under the old one. Rows that a writer commits during
        the copy can be lost, so stop all writers first.

        A missing ``force`` on an object store, two equal names, and databases in different storages
        raise ``InvalidRequestError``. A missing table or database raises ``NotFoundError``; an
        existing table ``new`` raises ``AlreadyExistsError``.
        """
        from lakeformat.paimon.branches.observed import observe_all

        source, target = parse_plain_name(old), parse_plain_name(new)
        if source == target:
            raise InvalidRequestError(f"the new name is the old one, {old!r}: choose another name")
        layout = self._existing_table(source)
        self._require_database(target.database)
        self._check_new("table", target.table)
        if (storage := self._storage_of(source.database)) is not self._storage_of(target.database):
            raise InvalidRequestError(
                f"cannot rename {old!r} to {new!r}: their databases are in different storages. "
                "Copy the table with clone_table (`lake clone`), then drop the old one"
            )
        if not force and mover(storage) is None:
            raise InvalidRequestError(
                f"renaming {old!r} is not atomic on {storage.scheme}, which has no directories: "
                "every file is copied and then removed. Stop all writers, then pass force=True"
            )
        self.table(old)  # raises for a table that cannot be read, before anything is changed
        published = self._withdrawal(source)
        self._move_table(source, target, layout, self._layout(target))
        if published is not None:
            published.run()
        renamed = self.table(new)
        observe_all(renamed._handle)
        return renamed

    @abstractmethod
    def repair(self, name: str | None = None) -> RepairReport:
        """Finish changes that a crash interrupted, and report the repaired and the damaged tables.

        ``name`` is a database or a table ``database.table``; None repairs all databases. A missing
        database or table raises ``NotFoundError``.
        """

    def place_of_new_table(self, name: str) -> tuple[Storage, TableLayout]:
        """Return the storage and the paths of ``database.table``, even if the table does not exist.

        A missing database raises ``NotFoundError``; a name that new tables must not have raises
        ``InvalidRequestError``.
        """
        parsed = parse_plain_name(name)
        self._require_database(parsed.database)
        self._check_new("table", parsed.table)
        return self._storage_of(parsed.database), self._layout(parsed)

    def location_of(self, name: str) -> str:
        """Return the URI of ``database.table``, even if it or its database does not exist."""
        try:
            storage, layout = self.place_of_new_table(name)
        except NotFoundError:
            parsed = parse_plain_name(name)
            return f"{database_directory(self.location, parsed.database)}/{parsed.table}"
        return storage.uri(layout.root)

    # ------------------------------------------------------------------ drops and publication

    def _alter_schema(
        self, storage: Storage, layout: TableLayout, changes: Sequence[SchemaChange]
    ) -> None:
        from lakeformat.catalog.altered_schema import alter_schema_of

        alter_schema_of(
            within(storage, layout.root), layout, changes, self._environment, self._publication
        )

    def _remove_published(self, name: TableName, plan: DropPlan) -> None:
        """Delete the files of a table, then its entries in catalogs of Iceberg tables."""
        published = self._withdrawal(name)
        self._remove_table(name, plan)
        if published is not None:
            published.run()

    def _withdrawal(self, name: TableName) -> Withdrawal | NoWithdrawal | None:
        """Return an object whose ``run`` removes a table's entries in Iceberg catalogs, and its
        Iceberg metadata in the warehouse; None if there are none, or if the table cannot be read.

        If an error ends the search for these entries and metadata, ``run`` only logs the error.
        """
        layout = self._files_of(name)
        with suppress(LakeError):
            table = load_table(
                self._storage_of(name.database),
                layout,
                self._environment,
                self._external_roots,
                self._publication,
            )
            return self._publication.withdrawal(table._handle)
        return None

    def _plan_drop(self, name: TableName) -> DropPlan:
        storage = self._storage_of(name.database)
        plan = plan_drop(storage, self._files_of(name), str(name), self._external_roots)
        if (published := self._withdrawal(name)) is not None:
            plan = replace(plan, published=published.names, kept=published.kept)
        if plan.external_paths:
            self._refuse_places_of_tables(str(name), plan.external_paths)
            refuse_shared_paths(plan, self._places_of_others(name))
        return plan

    def _check_planned(self, name: TableName, plan: DropPlan) -> None:
        self._require_droppable(name)
        storage = self._storage_of(name.database)
        require_planned(plan, self._plan_drop(name), storage, self._files_of(name))

    # ------------------------------------------------------------------ for each subclass

    @abstractmethod
    def _make_database(self, name: str, properties: dict[str, str]) -> bool:
        """Create a database and return True. Return False if the database already exists."""

    @abstractmethod
    def _check_remove_database(self, name: str, *, cascade: bool) -> None: ...

    @abstractmethod
    def _remove_database(self, name: str, *, cascade: bool) -> None: ...

    def _likely_tables(self, database: str) -> set[str]:
        """Return the names of all tables, and maybe of other directories, with one request."""
        return {*self._table_names(database)}

    @abstractmethod
    def _make_table(self, name: TableName, schema: TableSchema, *, exist_ok: bool) -> bool:
        """Create a table and return True. Return False if the table already exists."""

    @abstractmethod
    def _change_schema(
        self, name: TableName, layout: TableLayout, changes: tuple[SchemaChange, ...]
    ) -> None: ...

    @abstractmethod
    def _remove_table(self, name: TableName, plan: DropPlan) -> None: ...

    @abstractmethod
    def _move_table(
        self, old: TableName, new: TableName, source: TableLayout, target: TableLayout
    ) -> None: ...
