# SPDX-License-Identifier: Apache-2.0
"""A catalog whose databases and tables are rows in a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.drop import DropPlan
from lakeformat.catalog.leftovers import refuse_leftovers, remove_dropped
from lakeformat.catalog.names import (
    TableName,
    check_name,
    is_name,
    parse_plain_name,
    refuse_system_database,
)
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.catalog.sql.drop import Drops
from lakeformat.catalog.sql.listing import Listing
from lakeformat.catalog.sql.locks import TableLocks
from lakeformat.catalog.sql.places import LOCATION, Places
from lakeformat.catalog.sql.rename import Renames
from lakeformat.catalog.sql.repair import Repair
from lakeformat.catalog.texts import require_keys, require_texts
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, NotFoundError
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changes import SchemaChange
from lakeformat.storage import Storage
from lakeformat.storage.empty_directory import remove_empty_directory
from lakeformat.storage.sql import LockSettings, SqlDatabase, SqlLock, parse_database_uri
from lakeformat.storage.sql.catalog_rows import fits
from lakeformat.storage.sql.failure import no_such_catalog
from lakeformat.storage.sql.tables import NAME_LENGTH, VALUE_LENGTH, create_missing_tables
from lakeformat.tables.table import offer_arguments

__all__ = ["SqlCatalog"]

_EXISTS = "exists"
_KEPT = (_EXISTS, LOCATION)


@offer_arguments
class SqlCatalog(Catalog):
    """A catalog in a SQL database; one SQL database may hold several catalogs."""

    def __init__(
        self,
        storage: Storage,
        root: str,
        environment: Environment = SYSTEM,
        options: CatalogOptions | None = None,
    ) -> None:
        super().__init__(storage, root, environment, options)
        settings = self._options
        address = parse_database_uri(settings.get(CatalogOptions.uri), settings.driver_properties)
        sql = SqlDatabase(address, settings.get(CatalogOptions.client_pool_size))
        key = settings.get(CatalogOptions.catalog_key)
        key_length = settings.get(CatalogOptions.lock_key_max_length)
        self._make_tables = partial(create_missing_tables, sql, lock_key_length=key_length)
        sql.prepare(self._make_tables)  # opening a catalog creates no file
        times = LockSettings(
            acquire_timeout_seconds=settings.get(CatalogOptions.lock_acquire_timeout_millis) / 1000,
            max_sleep_seconds=settings.get(CatalogOptions.lock_check_max_sleep_millis) / 1000,
            key_length=key_length,
        )
        shows_options = settings.get(CatalogOptions.sync_all_properties)
        self._listing = Listing(sql, key, shows_options=shows_options)
        self._places = Places(storage, root, self._listing)
        self._locks = TableLocks(
            SqlLock(sql, key, times, environment),
            settings.get_or(CatalogOptions.lock_enabled, None),
        )
        self._renames = Renames(self._listing, self._places, self._locks)
        self._drops = Drops(
            self._listing,
            self._places,
            self._locks,
            self._renames,
            self._plan_drop,
            environment.new_id,
        )

    def __repr__(self) -> str:
        return f"<SqlCatalog {self.location} in {self._listing.address}>"

    def require_exists(self) -> None:
        """Raise ``NotFoundError`` if the SQL database has other catalogs, but not this one.

        A SQL database without catalogs raises no error.
        """
        found = self._listing.catalogs()
        if found and self._listing.catalog_key not in found:
            raise no_such_catalog(
                self._listing.address,
                self._listing.catalog_key,
                found,
                CatalogOptions.catalog_key.key,
            )

    # ------------------------------------------------------------------ databases

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        return self._listing.databases()

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database, including its location.

        A missing database raises ``NotFoundError``.
        """
        self._require_database(name)
        found = self._listing.database_properties(name)
        found.setdefault(LOCATION, self._places.default_location(name))
        return {key: value for key, value in found.items() if key != _EXISTS}

    def alter_database(
        self, name: str, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Set the properties in ``set``, and remove the properties whose keys are in ``remove``.

        A missing database raises ``NotFoundError``; ``location`` and ``exists`` in ``set``
        or ``remove`` raise ``InvalidRequestError``.
        """
        self._require_database(name)
        said, removed = require_texts("set", set), require_keys("remove", remove)
        for key in (*said, *removed):
            if key in _KEPT:
                raise InvalidRequestError(
                    f"property {key!r} of database {name!r} cannot be changed: leave it out"
                )
        _check_lengths(said)
        self._listing.change_database(name, said, removed)

    def _has_database(self, name: str) -> bool:
        return self._listing.has_database(name)

    def _make_database(self, name: str, properties: dict[str, str]) -> bool:
        if _EXISTS in properties:
            raise InvalidRequestError(
                f"property {_EXISTS!r} of a database is reserved for the catalog: leave it out"
            )
        said = {_EXISTS: "true", LOCATION: self._places.default_location(name), **properties}
        _check_lengths(said)
        storage, directory = self._places.at(name, said[LOCATION])
        self._make_tables()
        if self._has_database(name):
            return False
        if storage.scheme == "file" and "://" not in said[LOCATION]:
            # An absolute path, so that the working directory does not matter.
            said[LOCATION] = directory
        self._places.refuse_shared(name, said[LOCATION])
        storage.make_directory(directory)
        return self._listing.add_database(name, said)

    def _check_remove_database(self, name: str, *, cascade: bool) -> None:
        views = self._listing.views(name)
        if views and not cascade:
            raise InvalidRequestError(
                f"database {name!r} has views of other programs: {', '.join(views[:5])}"
                f"{', …' if len(views) > 5 else ''}. Drop them with those programs, or pass "
                "cascade=True"
            )

    def _remove_database(self, name: str, *, cascade: bool) -> None:
        for table in sorted(self._listing.drops(), key=str):
            if table.database == name:
                self._drops.finish(table)
        for new, old in self._listing.renames().items():
            if old.database == name:  # the files of this table are still in this database
                self._renames.finish(new, old)
        storage, directory = self._database_place(name)
        tables = self._listing.remove_database(name)
        if tables:
            raise InvalidRequestError(
                f"database {name!r} was not dropped: another program created table {tables[0]!r} "
                "meanwhile. Drop the database again"
            )
        remove_dropped(storage, directory)
        remove_empty_directory(storage, directory)  # files of unlisted tables are kept

    def _database_place(self, database: str) -> tuple[Storage, str]:
        return self._places.of_database(database)

    # ------------------------------------------------------------------ tables

    def _is_case_sensitive(self) -> bool:
        return self._options.get_or(CatalogOptions.case_sensitive, False)

    def _check_new(self, what: str, name: str) -> None:
        super()._check_new(what, name)
        if len(name) > NAME_LENGTH:
            raise InvalidRequestError(
                f"{what} name {name!r} has {len(name)} characters, but the metastore holds only "
                f"{NAME_LENGTH}: choose a shorter name"
            )

    def _table_names(self, database: str) -> list[str]:
        return self._listing.tables(database)

    def _is_listed(self, name: TableName) -> bool:
        return self._listing.has_table(name)

    def _existing_table(self, name: TableName) -> TableLayout:
        layout = super()._existing_table(name)
        table = TableName(name.database, name.table)
        # A copy that a rename has not completed also looks like a table.
        if not self._places.has_files(table) or self._renames.place_of(table) != table:
            raise NotFoundError(
                f"table '{name}' is listed in {self._listing.address}, but its files are missing "
                f"or incomplete in {self._storage_of(name.database).uri(layout.root)}: "
                f"catalog.repair('{name}') finishes an interrupted rename. If no rename was "
                "interrupted, restore the files of the table, or drop the table"
            )
        return layout

    def _files_of(self, name: TableName) -> TableLayout:
        return self._places.of_table(self._renames.place_of(name))[1]

    def _publishing(self, name: TableName) -> Storage:
        return self._locks.publishing(self._storage_of(name.database), name)

    def _make_table(self, name: TableName, schema: TableSchema, *, exist_ok: bool) -> bool:
        if self._is_listed(name):
            return False
        with self._locks.hold(name) as held:
            self._refuse_view(name)
            self._drops.finish_held(name)
            if self._is_listed(name):
                return False
            self._renames.refuse_files_on_their_way(name)
            storage, layout = self._places.of_table(name)
            refuse_leftovers(storage, layout, name)
            made = create_schema(self._locks.creating(storage, held), layout, schema)
            if not made:
                # A crash or another program left files of a table; with exist_ok they become this
                # table.
                if not exist_ok:
                    raise AlreadyExistsError(
                        f"table '{name}' is not listed in {self._listing.address}, but its files "
                        f"are in {storage.uri(layout.root)}: list it with "
                        f"catalog.repair('{name}'), or pass exist_ok=True to open it"
                    )
                schema = self._places.newest_schema(name)
            try:
                self._listing.add_table(name, schema)
            except NotFoundError:
                if made:  # unlisted files would prevent deleting the directory of the database
                    storage.delete_directory(layout.root)
                    remove_empty_directory(storage, layout.root.rpartition("/")[0])
                raise
        return True

    def _change_schema(
        self, name: TableName, layout: TableLayout, changes: tuple[SchemaChange, ...]
    ) -> None:
        table = TableName(name.database, name.table)
        # Without this check the new schema could be written to the old directory during a rename.
        with self._locks.hold(table) as held:
            self._existing_table(name)
            if name.branch == MAIN_BRANCH:
                storage = self._locks.creating(self._storage_of(name.database), held)
            else:
                storage = self._publishing(name)  # a branch has its own lock
            self._alter_schema(storage, layout, changes)
            if name.branch == MAIN_BRANCH:
                self._listing.synchronize(table, lambda: self._places.newest_schema(table))

    def _remove_table(self, name: TableName, plan: DropPlan) -> None:
        check = partial(self._check_planned, name, plan)
        if self._is_listed(name):
            self._drops.run(name, plan, check)
        else:
            self._drops.run_leftovers(name, plan, check)

    def _move_table(
        self, old: TableName, new: TableName, source: TableLayout, target: TableLayout
    ) -> None:
        with self._locks.hold_all(old, new) as held:
            self._refuse_view(new)
            self._drops.finish_held(new)
            self._renames.run_held(old, new, held[new])

    def prepare_clone(self, name: str, *, dry_run: bool) -> None:
        """Finish an interrupted drop of the table ``name``, unless ``dry_run`` is True.

        Raise ``AlreadyExistsError`` if ``name`` is a view, or is used by an interrupted rename.
        """
        target = parse_plain_name(name)
        self._refuse_view(target)
        if not dry_run:
            self._drops.finish(target)
        if (old := self._renames.place_of(target)) != target:
            raise AlreadyExistsError(
                f"the rename of '{old}' to '{name}' was interrupted, so nothing was cloned: finish "
                f"the rename with catalog.repair('{name}'), then clone to another name"
            )
        self._renames.refuse_files_on_their_way(target)

    def _refuse_view(self, name: TableName) -> None:
        if self._listing.has_view(name):
            raise AlreadyExistsError(
                f"'{name}' is a view of another program in {self._listing.address}: choose another "
                "name"
            )

    # ------------------------------------------------------------------ repair

    def repair(self, name: str | None = None) -> RepairReport:
        """Finish changes that a crash interrupted, and report the repaired and the damaged tables.

        ``name`` is a database or a table ``database.table``; None repairs all databases. A missing
        database or table raises ``NotFoundError``.
        """
        if name is not None and not isinstance(name, str):
            parse_plain_name(name)  # raises for a name that is not a str or not valid
        self._make_tables()  # a lost database is filled again
        if name is None:
            databases = sorted({*self.list_databases(), *self._places.databases_with_tables()})
            return self._repair(databases, None)
        if "." not in name:
            self._check_database_name(name)
            return self._repair([name], None)
        table = parse_plain_name(name)
        report = self._repair([table.database], table.table)
        if not any(report.to_dict().values()) and not self._is_listed(table):
            raise self._not_listed(table)
        return report

    def _check_database_name(self, name: str) -> None:
        check_name("database", name)
        refuse_system_database(name)

    def _repair(self, databases: list[str], table: str | None) -> RepairReport:
        def covers(name: TableName) -> bool:
            return name.database in databases and table in (None, name.table)

        odd = [database for database in databases if not is_name("database", database)]
        databases = [database for database in databases if database not in odd]
        made = [database for database in databases if self._relist_database(database)]
        run = Repair(
            self._listing, self._places, self._locks, self._renames, self._drops, covers
        ).run(databases)
        return RepairReport(registered=tuple(made), damaged=tuple(odd)) + run

    def _relist_database(self, name: str) -> bool:
        if self._has_database(name):
            return False
        if name not in self._places.databases_with_tables():
            self._require_database(name)
        return self._make_database(name, {})


def _check_lengths(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if not fits(key, value):
            raise InvalidRequestError(
                f"the property {key[:50]!r} of a database is too long: shorten it, because the SQL "
                f"database holds keys of at most {NAME_LENGTH} and values of at most "
                f"{VALUE_LENGTH} characters"
            )
