# SPDX-License-Identifier: Apache-2.0
"""The tables of the metastore, with the names, lengths and keys of Java's JDBC catalog."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TIMESTAMP

from lakeformat.storage.sql.database import SqlDatabase

__all__ = [
    "DATABASE_PROPERTIES",
    "LOCKS_NAME",
    "NAME_LENGTH",
    "TABLES",
    "TABLE_PROPERTIES",
    "VALUE_LENGTH",
    "VIEWS",
    "create_missing_tables",
]

NAME_LENGTH = 255
VALUE_LENGTH = 1000
LOCKS_NAME = "paimon_distributed_locks"

_METADATA = MetaData()


def _name(column: str, *, nullable: bool = False) -> Column[str]:
    return Column(column, String(NAME_LENGTH), nullable=nullable)


TABLES = Table(
    "paimon_tables",
    _METADATA,
    _name("catalog_key"),
    _name("database_name"),
    _name("table_name"),
    PrimaryKeyConstraint("catalog_key", "database_name", "table_name"),
)
DATABASE_PROPERTIES = Table(
    "paimon_database_properties",
    _METADATA,
    _name("catalog_key"),
    _name("database_name"),
    _name("property_key", nullable=True),
    Column("property_value", String(VALUE_LENGTH)),
    PrimaryKeyConstraint("catalog_key", "database_name", "property_key"),
)
TABLE_PROPERTIES = Table(
    "paimon_table_properties",
    _METADATA,
    _name("catalog_key"),
    _name("database_name"),
    _name("table_name"),
    _name("property_key"),
    Column("property_value", String(VALUE_LENGTH)),
    PrimaryKeyConstraint("catalog_key", "database_name", "table_name", "property_key"),
)
VIEWS = Table(
    "paimon_views",
    _METADATA,
    _name("catalog_key"),
    _name("database_name"),
    _name("view_name"),
    Column("view_schema", Text, nullable=False),
    PrimaryKeyConstraint("catalog_key", "database_name", "view_name"),
)


def _locks(key_length: int) -> Table:
    return Table(
        LOCKS_NAME,
        MetaData(),
        Column("lock_id", String(key_length), nullable=False),
        Column("acquired_at", TIMESTAMP, server_default=text("CURRENT_TIMESTAMP"), nullable=False),
        Column("expire_time_seconds", BigInteger, server_default=text("0"), nullable=False),
        PrimaryKeyConstraint("lock_id"),
    )


def create_missing_tables(database: SqlDatabase, *, lock_key_length: int) -> None:
    """Create the missing tables, and the file of a SQLite database if it is missing.

    Several processes may call this at once.
    """
    database.create()
    for table in (*_METADATA.sorted_tables, _locks(lock_key_length)):
        with database.reading("look for the tables") as connection:
            there = inspect(connection).has_table(table.name)
        if not there:
            _create(database, table)


def _create(database: SqlDatabase, table: Table) -> None:
    with database.writing(f"make the table {table.name}") as connection:
        try:
            with connection.begin_nested():
                table.create(connection, checkfirst=False)
        except DBAPIError:
            # PostgreSQL reports a race as one of several errors: check that the table exists.
            if not inspect(connection).has_table(table.name):
                raise
