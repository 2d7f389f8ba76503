# SPDX-License-Identifier: Apache-2.0
"""The SQL metastore: uses the same two SQL tables as Java's JDBC catalog and PyIceberg."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    MetaData,
    Row,
    String,
    Table,
    and_,
    delete,
    insert,
    inspect,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.exc import IntegrityError

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.iceberg.metastore import changed_meanwhile
from lakeformat.catalog.iceberg.named_files import NamedFilesMetastore
from lakeformat.catalog.iceberg.options import CATALOG_NAME, IcebergOptions
from lakeformat.catalog.iceberg.sql_leases import SqlLeases
from lakeformat.catalog.names import TableName
from lakeformat.environment import Environment
from lakeformat.errors import (
    CorruptTableError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage.sql.address import parse_database_uri
from lakeformat.storage.sql.database import SqlDatabase
from lakeformat.storage.sql.failure import is_unique_violation, no_such_catalog

__all__ = ["SqlMetastore"]

_ROWS = MetaData()
_TABLES = Table(
    "iceberg_tables",
    _ROWS,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
_DATABASES = Table(
    "iceberg_namespace_properties",
    _ROWS,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000)),
)
_TYPE = _TABLES.c.iceberg_type
_TABLE = "TABLE"
_EXISTS = "exists"
"""The property with which Java and PyIceberg store a database without properties."""
_JDBC = "jdbc."
_log = logging.getLogger(__name__)


class SqlMetastore(NamedFilesMetastore):
    """The rows of one catalog in a SQL database."""

    def __init__(
        self, options: IcebergOptions, files: CatalogFiles, environment: Environment
    ) -> None:
        properties = {
            key.removeprefix(_JDBC): value
            for key, value in options.client.items()
            if key.startswith(_JDBC)
        }
        self._database = SqlDatabase(parse_database_uri(options.uri, properties))
        self._catalog = options.client.get(CATALOG_NAME, "default")
        self._files = files
        self._environment = environment
        self._has_types: bool | None = None

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        with self._database.reading("list the databases") as connection:
            return self._databases(connection)

    def has_database(self, database: str) -> bool:
        """Return True if a row names the database, or a database inside of it."""
        return any(f"{each}.".startswith(f"{database}.") for each in self.databases())

    def database_properties(self, database: str) -> dict[str, str]:
        """Return the properties of a database."""
        with self._database.reading(f"read the properties of {database!r}") as connection:
            question = select(_DATABASES.c.property_key, _DATABASES.c.property_value)
            found = connection.execute(question.where(self._is(_DATABASES, database)))
            return {key: value or "" for key, value in found if key != _EXISTS}

    def make_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Add the rows of a database; return False if it exists.

        Missing SQL tables are created first.
        """
        self._database.create()
        with self._database.writing(f"create database {database!r}") as connection:
            _ROWS.create_all(connection)
            if database in self._databases(connection):
                return False
            for key, value in {**properties, _EXISTS: "true"}.items():
                row = {"property_key": key, "property_value": value}
                place = {"catalog_name": self._catalog, "namespace": database}
                connection.execute(insert(_DATABASES).values(**place, **row))
            return True

    def remove_database(self, database: str) -> None:
        """Delete the rows of a database."""
        with self._database.writing(f"drop database {database!r}") as connection:
            connection.execute(delete(_DATABASES).where(self._is(_DATABASES, database)))

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database; views are left out."""
        with self._database.reading(f"list the tables of {database!r}") as connection:
            if not self._is_set_up(connection):
                return []
            question = select(_TABLES.c.table_name)
            return [*connection.scalars(question.where(self._is(_TABLES, database)))]

    def answer(self, name: TableName) -> Answer:
        """Return the address of the metadata file in the row of a table."""
        with self._database.reading(f"find table '{name}'") as connection:
            found = self._row(connection, name) if self._is_set_up(connection) else None
        if found is None:
            raise NotFoundError(
                f"table '{name}' does not exist in {self._database.address}: check the name with "
                f"list_tables({name.database!r})"
            )
        address = found[0]
        if not address:
            raise CorruptTableError(
                f"the row of table '{name}' in {self._database.address} names no metadata file: "
                "register the table again with the program that created it"
            )
        return Answer(address)

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Change the name in the row of a table."""
        row = {"table_namespace": new.database, "table_name": new.table}
        with self._database.writing(f"rename table '{old}'") as connection:
            self._is_set_up(connection)
            connection.execute(update(_TABLES).where(self._place(old)).values(**row))

    def _forget(self, name: TableName, address: str | None) -> None:
        with self._database.writing(f"drop table '{name}'") as connection:
            self._is_set_up(connection)
            here = self._place(name)
            if address is not None:
                here = and_(here, _TABLES.c.metadata_location == address)
            done = connection.execute(delete(_TABLES).where(here))
        if address is not None and done.rowcount == 0:
            raise changed_meanwhile(name)

    def name_first(self, name: TableName, address: str, metadata: TableMetadata) -> bool:
        """Add a row for the table, with the ``address`` of its first metadata file.

        Return False if the table exists.
        """
        row = {
            "catalog_name": self._catalog,
            "table_namespace": name.database,
            "table_name": name.table,
            "metadata_location": address,
        }
        is_sent = False
        try:
            with self._database.writing(f"create table '{name}'") as connection:
                self._is_set_up(connection)
                if self._row(connection, name) is not None:
                    return False
                typed = {_TYPE.name: _TABLE} if self._has_types else {}
                try:
                    connection.execute(insert(_TABLES).values(**row, **typed))
                except IntegrityError as error:
                    if is_unique_violation(error):
                        return False  # another program added it first
                    raise
                is_sent = True
        except UnavailableError as lost:
            if not is_sent:
                raise
            return self._is_named(name, address, lost)
        return True

    def name_next(
        self, name: TableName, old: str, new: str, base: TableMetadata, metadata: TableMetadata
    ) -> bool:
        """Store the address of the new metadata file in the row of a table.

        Return False if ``old`` is no longer the address in the row.
        """
        row = {"metadata_location": new, "previous_metadata_location": old}
        is_sent = False
        try:
            with self._database.writing(f"publish table '{name}'") as connection:
                self._is_set_up(connection)
                here = and_(self._place(name), _TABLES.c.metadata_location == old)
                done = connection.execute(update(_TABLES).where(here).values(**row))
                is_sent = done.rowcount == 1
        except UnavailableError as error:
            if not is_sent:
                raise
            return self._is_named(name, new, error)
        return is_sent

    def leases(self, key: str) -> SqlLeases:
        """Return the leases of the table with the uuid ``key``; one SQL row stores them."""
        return SqlLeases(self._database, self._catalog, key)

    def forget_leases(self, table_uuid: str) -> None:
        """Delete the row with the leases of a dropped table."""
        self.leases(table_uuid).forget()

    def more_about_missing(self) -> str:
        """Return the end of a message about a missing database; "" if there is no hint.

        The hint names the other catalogs in the SQL database.
        """
        with self._database.reading("list the catalogs") as connection:
            others = sorted(self._catalogs(connection) - {self._catalog})
        if not others:
            return ""
        return (
            f". This is the catalog {self._catalog!r}. The SQL database also has these catalogs: "
            f"{', '.join(map(repr, others[:5]))}{', …' if len(others) > 5 else ''}. "
            f"Choose one with the option {CATALOG_NAME}"
        )

    def require_exists(self) -> None:
        """Raise ``NotFoundError`` if the SQL database lacks the SQL tables of Iceberg catalogs.

        The same error is raised if these tables have only rows of other catalogs.
        """
        with self._database.reading("list the catalogs") as connection:
            if not self._is_set_up(connection):
                raise NotFoundError(
                    f"{self._database.address} has no catalog of Iceberg tables, because it lacks "
                    f"the table {_TABLES.name!r} or {_DATABASES.name!r}: correct the uri; for a "
                    "new catalog, create_database('shop') creates both tables"
                )
            found = self._catalogs(connection)
        if found and self._catalog not in found:
            raise no_such_catalog(self._database.address, self._catalog, found, CATALOG_NAME)

    def _catalogs(self, connection: Connection) -> set[str]:
        if not self._is_set_up(connection):
            return set()
        columns = (_TABLES.c.catalog_name, _DATABASES.c.catalog_name)
        return {*connection.scalars(union(*map(select, columns)))}

    def _databases(self, connection: Connection) -> list[str]:
        if not self._is_set_up(connection):
            return []
        mine = [
            select(column).where(column.table.c.catalog_name == self._catalog)
            for column in (_TABLES.c.table_namespace, _DATABASES.c.namespace)
        ]
        return [*connection.scalars(union(*mine))]

    def _row(self, connection: Connection, name: TableName) -> Row[Any] | None:
        question = select(_TABLES.c.metadata_location).where(self._place(name))
        return connection.execute(question).first()

    def _place(self, name: TableName) -> ColumnElement[bool]:
        return and_(self._is(_TABLES, name.database), _TABLES.c.table_name == name.table)

    def _is(self, table: Table, database: str) -> ColumnElement[bool]:
        """Return the SQL condition for the rows of a database in ``table``. It excludes the rows of
        views.
        """
        column = table.c.table_namespace if table is _TABLES else table.c.namespace
        found = and_(table.c.catalog_name == self._catalog, column == database)
        if table is _TABLES and self._has_types:
            found = and_(found, or_(_TYPE == _TABLE, _TYPE.is_(None)))
        return found

    def _is_set_up(self, connection: Connection) -> bool:
        """Return True if both SQL tables exist.

        Also set ``_has_types``: True if ``iceberg_tables`` has the column that marks views. Older
        programs made the SQL table without that column.
        """
        if self._has_types is None:
            found = inspect(connection)
            if not found.has_table(_TABLES.name) or not found.has_table(_DATABASES.name):
                return False
            names = {column["name"] for column in found.get_columns(_TABLES.name)}
            self._has_types = _TYPE.name in names
        return True
