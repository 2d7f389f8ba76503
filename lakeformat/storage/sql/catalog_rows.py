# SPDX-License-Identifier: Apache-2.0
"""The rows of one catalog: its databases and tables, and their properties.

``catalog_key`` is a column of every row, so that several catalogs share one SQL database. Two
properties are marks, with which this library records an unfinished change. Java shows them as
properties of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, union, update
from sqlalchemy.exc import IntegrityError

from lakeformat.storage.sql.failure import is_unique_violation
from lakeformat.storage.sql.tables import (
    DATABASE_PROPERTIES,
    NAME_LENGTH,
    TABLE_PROPERTIES,
    TABLES,
    VALUE_LENGTH,
    VIEWS,
)

__all__ = ["DROPPED", "MARKS", "RENAMED_FROM", "CatalogRows", "fits"]

DROPPED = "lake.dropped"
"""The mark of a dropped table that is not listed any more, and whose files are being deleted."""
RENAMED_FROM = "lake.renamed-from"
"""The mark of a table that is listed under its new name, and whose files are being moved."""
MARKS = (DROPPED, RENAMED_FROM)


def fits(key: str, value: str) -> bool:
    """Return True if the columns can store a property.

    Key and value must not be too long, nor contain a null character: PostgreSQL stores none.
    """
    if "\0" in key + value:
        return False
    return len(key) <= NAME_LENGTH and len(value) <= VALUE_LENGTH


class CatalogRows:
    """The rows of one catalog, read and changed in the transaction of a given connection."""

    def __init__(self, catalog_key: str) -> None:
        self._key = catalog_key

    def catalogs(self, connection: Connection) -> set[str]:
        """Return the key of every catalog in which a database has a property, a table or a view."""
        questions = (select(each.c.catalog_key) for each in (TABLES, DATABASE_PROPERTIES, VIEWS))
        return {*connection.scalars(union(*questions))}

    def databases(self, connection: Connection) -> list[str]:
        """Return the name of every database that has a property, a table or a view, sorted."""
        names: set[str] = set()
        for table in (TABLES, DATABASE_PROPERTIES, VIEWS):
            question = select(table.c.database_name).where(table.c.catalog_key == self._key)
            names.update(connection.scalars(question.distinct()))
        return sorted(names)

    def has_database(self, connection: Connection, database: str) -> bool:
        """Return True if the database has a property, a table or a view."""
        questions = (
            select(table.c.database_name).where(self._here(table, database)).limit(1)
            for table in (DATABASE_PROPERTIES, TABLES, VIEWS)
        )
        return any(connection.execute(question).first() for question in questions)

    def keep_database(self, connection: Connection, database: str) -> bool:
        """Return True if a database exists, and lock its property rows until the transaction ends.

        Until then, another transaction that calls this method for the same database waits. A
        database without properties is not locked.
        """
        table = DATABASE_PROPERTIES
        rows = select(table.c.property_key).where(self._here(table, database)).with_for_update()
        return bool(connection.execute(rows).all()) or self.has_database(connection, database)

    def database_properties(self, connection: Connection, database: str) -> dict[str, str]:
        """Return the properties of a database."""
        table = DATABASE_PROPERTIES
        question = select(table.c.property_key, table.c.property_value)
        found = connection.execute(question.where(self._here(table, database)))
        return {key: value or "" for key, value in found}

    def set_database_properties(
        self, connection: Connection, database: str, properties: Mapping[str, str]
    ) -> None:
        """Set properties of a database, and replace properties with the same keys."""
        self.remove_database_properties(connection, database, properties)
        for key, value in properties.items():
            self._insert(
                connection,
                DATABASE_PROPERTIES,
                database_name=database,
                property_key=key,
                property_value=value,
            )

    def remove_database_properties(
        self, connection: Connection, database: str, keys: Iterable[str]
    ) -> None:
        """Remove properties of a database."""
        table = DATABASE_PROPERTIES
        wanted = and_(self._here(table, database), table.c.property_key.in_([*keys]))
        connection.execute(delete(table).where(wanted))

    def remove_database(self, connection: Connection, database: str) -> None:
        """Remove a database, with its tables, views and properties, from the catalog."""
        for table in (TABLES, TABLE_PROPERTIES, VIEWS, DATABASE_PROPERTIES):
            connection.execute(delete(table).where(self._here(table, database)))

    def tables(self, connection: Connection, database: str) -> list[str]:
        """Return the names of the tables in a database."""
        question = select(TABLES.c.table_name).where(self._here(TABLES, database))
        return sorted(connection.scalars(question))

    def views(self, connection: Connection, database: str) -> list[str]:
        """Return the names of the views in a database. Only other programs create and read
        views.
        """
        question = select(VIEWS.c.view_name).where(self._here(VIEWS, database))
        return sorted(connection.scalars(question))

    def has_table(self, connection: Connection, database: str, name: str) -> bool:
        """Return True if a table is listed."""
        question = select(TABLES.c.table_name).where(self._here(TABLES, database, name))
        return connection.execute(question).first() is not None

    def has_view(self, connection: Connection, database: str, name: str) -> bool:
        """Return True if a view has this name."""
        question = select(VIEWS.c.view_name).where(self._here(VIEWS, database, name))
        return connection.execute(question).first() is not None

    def add_table(self, connection: Connection, database: str, name: str) -> bool:
        """Add a table to the list of the catalog; return False if it is already listed."""
        return self._insert(connection, TABLES, database_name=database, table_name=name)

    def remove_table(self, connection: Connection, database: str, name: str) -> bool:
        """Remove a table and its properties from the catalog, but keep its marks of unfinished
        changes.

        Return False if the table was not listed.
        """
        self.replace_properties(connection, database, name, {})
        rows = delete(TABLES).where(self._here(TABLES, database, name))
        return connection.execute(rows).rowcount == 1

    def rename_table(
        self, connection: Connection, old: tuple[str, str], new: tuple[str, str]
    ) -> bool:
        """Rename a table, with its properties, in the catalog; return False if it is not listed.

        ``old`` and ``new`` are each a database and a table name.
        The new name must not be listed. Properties stored under the new name belong to a deleted
        table, and are deleted.
        """
        connection.execute(delete(TABLE_PROPERTIES).where(self._here(TABLE_PROPERTIES, *new)))
        moved = 0
        for table in (TABLE_PROPERTIES, TABLES):
            change = update(table).where(self._here(table, *old))
            change = change.values(database_name=new[0], table_name=new[1])
            moved = connection.execute(change).rowcount
        return moved == 1

    def properties(self, connection: Connection, database: str, name: str) -> dict[str, str]:
        """Return the properties of a table, which include the marks of unfinished changes."""
        table = TABLE_PROPERTIES
        question = select(table.c.property_key, table.c.property_value)
        found = connection.execute(question.where(self._here(table, database, name)))
        return {key: value or "" for key, value in found}

    def replace_properties(
        self, connection: Connection, database: str, name: str, properties: Mapping[str, str]
    ) -> None:
        """Replace all properties of a table, except marks."""
        table = TABLE_PROPERTIES
        gone = and_(self._here(table, database, name), table.c.property_key.not_in(MARKS))
        connection.execute(delete(table).where(gone))
        for key, value in properties.items():
            self._insert(
                connection,
                table,
                database_name=database,
                table_name=name,
                property_key=key,
                property_value=value,
            )

    def set_mark(
        self, connection: Connection, database: str, name: str, mark: str, value: str
    ) -> None:
        """Set a mark on a table, before the change that the mark records begins."""
        self.remove_mark(connection, database, name, mark)
        self._insert(
            connection,
            TABLE_PROPERTIES,
            database_name=database,
            table_name=name,
            property_key=mark,
            property_value=value,
        )

    def remove_mark(self, connection: Connection, database: str, name: str, mark: str) -> None:
        """Remove a mark from a table, because the change that the mark records is complete."""
        table = TABLE_PROPERTIES
        done = and_(self._here(table, database, name), table.c.property_key == mark)
        connection.execute(delete(table).where(done))

    def marked(self, connection: Connection, mark: str) -> dict[tuple[str, str], str]:
        """Return the value of a mark for each table that has it; the keys are database and table
        name.
        """
        table = TABLE_PROPERTIES
        question = select(table.c.database_name, table.c.table_name, table.c.property_value)
        rows = question.where(table.c.catalog_key == self._key, table.c.property_key == mark)
        return {(row[0], row[1]): row[2] or "" for row in connection.execute(rows)}

    def _here(self, table: Table, database: str, name: str | None = None) -> ColumnElement[bool]:
        """Return the condition for the rows of a database, or of its table or view ``name``."""
        found = and_(table.c.catalog_key == self._key, table.c.database_name == database)
        if name is None:
            return found
        column = table.c.view_name if table is VIEWS else table.c.table_name
        return and_(found, column == name)

    def _insert(self, connection: Connection, table: Table, **values: str) -> bool:
        """Insert a row and return True, or return False if the row exists.

        The transaction can continue in both cases.
        """
        try:
            with connection.begin_nested():
                connection.execute(insert(table).values(catalog_key=self._key, **values))
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            return False
        return True
