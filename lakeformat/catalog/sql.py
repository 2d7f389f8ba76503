"""The SQL catalog: a database lists what there is, as Java's JDBC catalog does; files say the rest.

Whatever a crash interrupts is noted in the database before it is begun, so that ``repair``, or
the next call that meets it, can finish it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.drop import SCHEMA_DIRECTORY, DropPlan, run_drop
from lakeformat.catalog.names import (
    BRANCH_PREFIX,
    TableName,
    check_name,
    parse_plain_name,
    refuse_system_database,
)
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.report import RepairReport
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.layout import DATABASE_SUFFIX, MAIN_BRANCH, TableLayout, database_directory
from lakeformat.metadata.schema_file import (
    alter_schema,
    create_schema,
    read_schema,
    schema_ids,
    table_exists,
)
from lakeformat.schema import TableSchema
from lakeformat.schema_changes import SchemaChange
from lakeformat.sql import LockSettings, SqlDatabase, SqlLock, parse_database_uri
from lakeformat.sql.catalog_rows import DROPPED, RENAMED_FROM, CatalogRows, fits
from lakeformat.sql.tables import NAME_LENGTH, VALUE_LENGTH, create_missing_tables
from lakeformat.storage import Storage, resolve
from lakeformat.storage.lock import Held
from lakeformat.storage.locked_creation import LockedCreation
from lakeformat.storage.move_directory import move_directory, mover

__all__ = ["SqlCatalog"]

_EXISTS, _LOCATION = "exists", "location"
_KEPT = (_EXISTS, _LOCATION)


class SqlCatalog(Catalog):
    """Databases and tables are rows; one SQL database may hold several catalogs."""

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
        self._sql = SqlDatabase(address, settings.get(CatalogOptions.client_pool_size))
        key = settings.get(CatalogOptions.catalog_key)
        self._rows = CatalogRows(key)
        key_length = settings.get(CatalogOptions.lock_key_max_length)
        create_missing_tables(self._sql, lock_key_length=key_length)
        times = LockSettings(
            acquire_timeout_seconds=settings.get(CatalogOptions.lock_acquire_timeout_millis) / 1000,
            max_sleep_seconds=settings.get(CatalogOptions.lock_check_max_sleep_millis) / 1000,
            key_length=key_length,
        )
        self._lock = SqlLock(self._sql, key, times, environment)

    def __repr__(self) -> str:
        return f"<SqlCatalog {self.location} in {self._sql.address}>"

    @property
    def lock(self) -> SqlLock | None:
        """What schema changes and commits hold where the storage alone cannot decide a race."""
        needed = mover(self._storage) is None
        return self._lock if self._options.get_or(CatalogOptions.lock_enabled, needed) else None

    # ------------------------------------------------------------------ databases

    def list_databases(self) -> list[str]:
        """Names of all databases."""
        with self._sql.reading("list databases") as connection:
            return self._rows.databases(connection)

    def database_properties(self, name: str) -> dict[str, str]:
        """What was said about a database, its location among it."""
        self._require_database(name)
        with self._sql.reading(f"look up the database {name!r}") as connection:
            found = self._rows.database_properties(connection, name)
        found.setdefault(_LOCATION, self._default_location(name))
        return {key: value for key, value in found.items() if key != _EXISTS}

    def alter_database(
        self, name: str, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Change what is said about a database; its location stays."""
        self._require_database(name)
        removed = [*remove]
        for key in (*(set or {}), *removed):
            if key in _KEPT:
                raise InvalidRequestError(f"the property {key!r} of a database cannot be changed")
        _check_properties(set or {})
        with self._sql.writing(f"change the database {name!r}") as connection:
            self._rows.remove_database_properties(connection, name, removed)
            self._rows.set_database_properties(connection, name, set or {})

    def _has_database(self, name: str) -> bool:
        with self._sql.reading(f"look up the database {name!r}") as connection:
            return self._rows.has_database(connection, name)

    def _make_database(self, name: str, properties: dict[str, str]) -> bool:
        if _EXISTS in properties:
            raise InvalidRequestError(f"the property {_EXISTS!r} of a database is the catalog's")
        said = {_EXISTS: "true", _LOCATION: self._default_location(name), **properties}
        _check_properties(said)
        storage, directory = self._place_of(name, said[_LOCATION])
        if self._has_database(name):
            return False
        storage.make_directory(directory)
        with self._sql.writing(f"make the database {name!r}") as connection:
            if self._rows.has_database(connection, name):
                return False
            self._rows.set_database_properties(connection, name, said)
        return True

    def _check_remove_database(self, name: str, *, cascade: bool) -> None:
        with self._sql.reading(f"list the views of {name!r}") as connection:
            views = self._rows.views(connection, name)
        if views and not cascade:
            raise InvalidRequestError(
                f"database {name!r} holds views of other programs: {', '.join(views[:5])}; drop "
                "them there, or pass cascade=True"
            )

    def _remove_database(self, name: str) -> None:
        for table in self._marked(name, DROPPED):
            self._finish_drop(TableName(name, table))
        storage, directory = self._database_place(name)
        with self._sql.writing(f"drop the database {name!r}") as connection:
            tables = self._rows.tables(connection, name)
            if not tables:
                self._rows.remove_database(connection, name)
        if tables:
            raise InvalidRequestError(
                f"database {name!r} got the table {tables[0]!r} meanwhile: it stays"
            )
        if not storage.list(directory):  # what nobody listed is not ours to remove
            storage.delete_directory(directory)

    def _default_location(self, database: str) -> str:
        directory = database_directory(self._root, database)
        # Java takes a path literally where we would write %20 into a URI.
        return directory if self._storage.scheme == "file" else self._storage.uri(directory)

    def _database_place(self, database: str) -> tuple[Storage, str]:
        with self._sql.reading(f"look up the database {database!r}") as connection:
            properties = self._rows.database_properties(connection, database)
        return self._place_of(database, properties.get(_LOCATION) or "")

    def _place_of(self, database: str, location: str) -> tuple[Storage, str]:
        """Where a database lies that says so, in our words or in Java's."""
        if location in ("", self._default_location(database)):
            return self._storage, database_directory(self._root, database)
        return resolve(location.rstrip("/"), self._storage)

    # ------------------------------------------------------------------ tables

    def _is_case_sensitive(self) -> bool:
        return self._options.get_or(CatalogOptions.case_sensitive, False)

    def _check_new(self, what: str, name: str) -> None:
        super()._check_new(what, name)
        if len(name) > NAME_LENGTH:
            raise InvalidRequestError(
                f"{what} name {name!r} has {len(name)} characters; the column of the metastore "
                f"holds {NAME_LENGTH}"
            )

    def _table_names(self, database: str) -> list[str]:
        with self._sql.reading(f"list the tables of {database!r}") as connection:
            return self._rows.tables(connection, database)

    def _is_listed(self, name: TableName) -> bool:
        with self._sql.reading(f"look up the table '{name}'") as connection:
            return self._rows.has_table(connection, name.database, name.table)

    def _existing_table(self, name: TableName) -> TableLayout:
        layout = super()._existing_table(name)
        if not self._has_files(name):
            raise NotFoundError(
                f"table '{name}' is listed in {self._sql.address}, but has no schema in "
                f"{self._storage_of(name.database).uri(layout.root)}: repair('{name}') finishes a "
                "rename that was interrupted; otherwise restore its files, or drop it"
            )
        return layout

    def _has_files(self, name: TableName) -> bool:
        layout = self._layout(name).on_branch(MAIN_BRANCH)
        return bool(schema_ids(self._storage_of(name.database), layout))

    def _make_table(self, name: TableName, schema: TableSchema, *, exist_ok: bool) -> bool:
        if self._is_listed(name):
            return False
        with self._holding(name) as held:
            self._refuse_view(name)
            if name.table in self._marked(name.database, DROPPED):
                self._finish_drop_held(name)
            layout, storage = self._layout(name), self._creating(name, held)
            if self._is_listed(name):
                return False
            if not create_schema(storage, layout, schema):
                # A crash, or another program, left files; they are the table if that is welcome.
                if not exist_ok:
                    raise AlreadyExistsError(
                        f"table '{name}' is not listed in {self._sql.address}, but its files are "
                        f"in {storage.uri(layout.root)}: repair('{name}') lists it, or pass "
                        "exist_ok=True to get it as it is"
                    )
                schema = self._newest_schema(name)
            self._register(name, schema)
        return True

    def _register(self, name: TableName, schema: TableSchema) -> None:
        with self._sql.writing(f"list the table '{name}'") as connection:
            self._rows.add_table(connection, name.database, name.table)
            self._rows.replace_properties(
                connection, name.database, name.table, self._properties_of(schema)
            )

    def _properties_of(self, schema: TableSchema) -> dict[str, str]:
        """What other programs are told about a table; the schema file stays the truth.

        An option too long for its column is left out: cut short it would be another option.
        """
        if not self._options.get(CatalogOptions.sync_all_properties):
            return {}
        said = dict(schema.options)
        if schema.primary_keys:
            said["primary-key"] = ",".join(schema.primary_keys)
        if schema.partition_keys:
            said["partition"] = ",".join(schema.partition_keys)
        return {key: value for key, value in said.items() if fits(key, value)}

    def _change_schema(
        self, name: TableName, layout: TableLayout, changes: tuple[SchemaChange, ...]
    ) -> None:
        altered = alter_schema(self._publishing(name), layout, changes, self._environment)
        if name.branch == MAIN_BRANCH:
            self._synchronize(name, altered)

    def _synchronize(self, name: TableName, schema: TableSchema) -> bool:
        """Tell other programs the options of a schema; False if they know them."""
        wanted = self._properties_of(schema)
        with self._sql.writing(f"note the options of '{name}'") as connection:
            found = self._rows.properties(connection, name.database, name.table)
            if {k: v for k, v in found.items() if k not in (DROPPED, RENAMED_FROM)} == wanted:
                return False
            self._rows.replace_properties(connection, name.database, name.table, wanted)
        return True

    def _newest_schema(self, name: TableName) -> TableSchema:
        storage, layout = self._storage_of(name.database), self._layout(name)
        return read_schema(storage, layout, max(schema_ids(storage, layout)))

    def _remove_table(self, name: TableName, plan: DropPlan) -> None:
        with self._holding(name):
            with self._sql.writing(f"drop the table '{name}'") as connection:
                self._rows.remove_table(connection, name.database, name.table)
                self._rows.remove_mark(connection, name.database, name.table, RENAMED_FROM)
                self._rows.set_mark(
                    connection, name.database, name.table, DROPPED, plan.directory[:VALUE_LENGTH]
                )
            run_drop(self._storage_of(name.database), self._layout(name), plan)
            self._unmark(name, DROPPED)

    def _finish_drop(self, name: TableName) -> bool:
        with self._holding(name):
            return self._finish_drop_held(name)

    def _finish_drop_held(self, name: TableName) -> bool:
        """Remove the files of a table that is not listed any more; False if it is again."""
        if name.table not in self._marked(name.database, DROPPED):
            return False
        again = self._is_listed(name)  # made anew by a program that does not know the mark
        if not again:
            run_drop(self._storage_of(name.database), self._layout(name), self._plan_drop(name))
        self._unmark(name, DROPPED)
        return not again

    def _move_table(
        self, old: TableName, new: TableName, source: TableLayout, target: TableLayout
    ) -> None:
        with ExitStack() as stack:
            held = self._holding_both(stack, old, new)
            self._refuse_view(new)
            if new.table in self._marked(new.database, DROPPED):
                self._finish_drop_held(new)
            if self._is_listed(new) or self._has_files(new):
                raise AlreadyExistsError(
                    f"table '{new}' exists in {self.location}, or files of one do: '{old}' stays"
                )
            self._list_as(old, new)
            try:
                self._move_files(old, new, held)
            except LakeError as error:
                raise type(error)(
                    f"{error} Table '{old}' is called '{new}' already: repair('{new}') moves its "
                    "files when that is possible again."
                ) from error

    def _list_as(self, old: TableName, new: TableName) -> None:
        with self._sql.writing(f"rename the table '{old}'") as connection:
            before, after = (old.database, old.table), (new.database, new.table)
            if not self._rows.rename_table(connection, before, after):
                raise NotFoundError(f"table '{old}' does not exist any more in {self.location}")
            self._rows.set_mark(connection, *after, RENAMED_FROM, str(old))

    def _move_files(self, old: TableName, new: TableName, held: Held) -> None:
        source, target = self._layout(old).root, self._layout(new).root
        move_directory(self._creating(new, held), source, target, last=SCHEMA_DIRECTORY)
        self._unmark(new, RENAMED_FROM)

    def _publishing(self, name: TableName) -> Storage:
        storage, lock = self._storage_of(name.database), self.lock
        branch = "" if name.branch == MAIN_BRANCH else f"${BRANCH_PREFIX}{name.branch}"
        return storage if lock is None else LockedCreation(storage, lock, f"{name}{branch}")

    def _creating(self, name: TableName, held: Held) -> Storage:
        """The same for who holds the lock already: not every storage creates without one."""
        storage = self._storage_of(name.database)
        return storage if self.lock is None else LockedCreation(storage, _HeldAlready(held), "")

    def _refuse_view(self, name: TableName) -> None:
        with self._sql.reading(f"look for a view '{name}'") as connection:
            if self._rows.has_view(connection, name.database, name.table):
                raise AlreadyExistsError(
                    f"'{name}' is a view of another program in {self._sql.address}: choose another "
                    "name"
                )

    def _marked(self, database: str, mark: str) -> dict[str, str]:
        with self._sql.reading(f"look for unfinished work in {database!r}") as connection:
            return self._rows.marked(connection, database, mark)

    def _unmark(self, name: TableName, mark: str) -> None:
        with self._sql.writing(f"finish '{name}'") as connection:
            self._rows.remove_mark(connection, name.database, name.table, mark)

    def _holding(self, name: TableName) -> AbstractContextManager[Held]:
        """Names are given and taken by one at a time, whatever ``lock.enabled`` says."""
        return self._lock.hold(str(name))

    def _holding_both(self, stack: ExitStack, old: TableName, new: TableName) -> Held:
        """The lock of ``new``; two renames never wait in a circle, as all begin with the lesser."""
        both = sorted((old, new), key=str)
        held = {name: stack.enter_context(self._holding(name)) for name in both}
        return held[new]

    # ------------------------------------------------------------------ repair

    def repair(self, name: str | None = None) -> RepairReport:
        """Finish what a crash left half-done, in all, one database or one table; repeatable."""
        if name is not None and "." in name:
            parsed = parse_plain_name(name)
            return self._repair_database(parsed.database, parsed.table)
        if name is not None:
            check_name("database", name)
            refuse_system_database(name)
            return self._repair_database(name, None)
        report = RepairReport()
        for database in sorted({*self.list_databases(), *self._databases_with_files()}):
            report += self._repair_database(database, None)
        return report

    def _databases_with_files(self) -> list[str]:
        """Database directories that hold a table, listed or not."""
        return [
            entry.name.removesuffix(DATABASE_SUFFIX)
            for entry in self._storage.list(self._root)
            if entry.is_directory
            and entry.name.endswith(DATABASE_SUFFIX)
            and _tables_below(self._storage, entry.path)
        ]

    def _repair_database(self, database: str, only: str | None) -> RepairReport:
        made = not self._has_database(database)
        if made:
            if database not in self._databases_with_files():
                self._require_database(database)
            self._make_database(database, {})

        def names(tables: Iterable[str]) -> list[TableName]:
            return [TableName(database, table) for table in tables if only in (None, table)]

        dropped = [
            name for name in names(self._marked(database, DROPPED)) if self._finish_drop(name)
        ]
        sources = self._marked(database, RENAMED_FROM)
        moved = [name for name in names(sources) if self._finish_rename(name, sources[name.table])]
        found = names(_tables_below(*self._database_place(database)))
        registered = [name for name in found if self._register_found(name)]
        listed = names(self._table_names(database))
        if only is not None and not (dropped or listed):
            raise NotFoundError(f"table '{database}.{only}' does not exist in {self.location}")
        there = [name for name in listed if self._has_files(name)]
        synchronized = [name for name in there if self._synchronize_found(name)]
        return RepairReport(
            registered=(*((database,) if made else ()), *map(str, registered)),
            moved=tuple(map(str, moved)),
            dropped=tuple(map(str, dropped)),
            synchronized=tuple(map(str, synchronized)),
            without_files=tuple(str(name) for name in listed if name not in there),
        )

    def _register_found(self, name: TableName) -> bool:
        if self._is_listed(name):
            return False
        with self._holding(name):
            with self._sql.reading(f"look up '{name}'") as connection:
                taken = self._rows.has_view(connection, name.database, name.table)
            if taken or self._is_listed(name) or not self._has_files(name):
                return False
            self._register(name, self._newest_schema(name))
        return True

    def _synchronize_found(self, name: TableName) -> bool:
        with self._holding(name):
            return self._is_listed(name) and self._synchronize(name, self._newest_schema(name))

    def _finish_rename(self, new: TableName, old_text: str) -> bool:
        old = parse_plain_name(old_text)
        with ExitStack() as stack:
            held = self._holding_both(stack, old, new)
            if self._marked(new.database, RENAMED_FROM).get(new.table) != old_text:
                return False
            if self._is_listed(old):  # made anew: what is there is not this table's any more
                self._unmark(new, RENAMED_FROM)
                return False
            copies = mover(self._storage_of(new.database)) is None
            if self._has_files(old) and (copies or not self._has_files(new)):
                self._move_files(old, new, held)  # from where it stopped
                return True
            if not self._has_files(new):
                return False  # nothing to move: it is reported as without files
            if copies:  # all is copied, else the schemas would still be in the old place
                self._storage_of(old.database).delete_directory(self._layout(old).root)
            self._unmark(new, RENAMED_FROM)
            return True


class _HeldAlready:
    """A lock whose holder is the caller."""

    def __init__(self, held: Held) -> None:
        self._held = held

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        yield self._held


def _tables_below(storage: Storage, directory: str) -> list[str]:
    return [
        entry.name
        for entry in storage.list(directory)
        if entry.is_directory and table_exists(storage, TableLayout(entry.path))
    ]


def _check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if not all(isinstance(text, str) for text in (key, value)):
            raise InvalidRequestError(f"the property {key!r} of a database must be text")
        if not fits(key, value):
            raise InvalidRequestError(
                f"the property {key[:50]!r} of a database is too long: the metastore holds keys of "
                f"{NAME_LENGTH} and values of {VALUE_LENGTH} characters"
            )
