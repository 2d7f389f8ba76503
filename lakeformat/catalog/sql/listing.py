# SPDX-License-Identifier: Apache-2.0
"""Reads and changes the rows of one catalog in a SQL database; each method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import Connection

from lakeformat.catalog.names import TableName, parse_plain_name
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage.sql import SqlDatabase
from lakeformat.storage.sql.catalog_rows import DROPPED, MARKS, RENAMED_FROM, CatalogRows, fits

__all__ = ["Listing"]


class Listing:
    """The databases, the tables, their options and the unfinished changes of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_key: str, *, shows_options: bool) -> None:
        self.address = database.address
        self.catalog_key = catalog_key
        self._sql = database
        self._rows = CatalogRows(catalog_key)
        self._shows_options = shows_options

    def catalogs(self) -> set[str]:
        """Return the keys (``catalog-key``) of all catalogs in the SQL database."""
        with self._sql.reading("list the catalogs") as connection:
            return self._rows.catalogs(connection)

    # ------------------------------------------------------------------ databases

    def databases(self) -> list[str]:
        with self._sql.reading("list databases") as connection:
            return self._rows.databases(connection)

    def has_database(self, name: str) -> bool:
        with self._sql.reading(f"look up the database {name!r}") as connection:
            return self._rows.has_database(connection, name)

    def database_properties(self, name: str) -> dict[str, str]:
        with self._sql.reading(f"look up the database {name!r}") as connection:
            return self._rows.database_properties(connection, name)

    def add_database(self, name: str, properties: Mapping[str, str]) -> bool:
        """Add a database; return False if it is listed already."""
        with self._sql.writing(f"create the database {name!r}") as connection:
            if self._rows.has_database(connection, name):
                return False
            self._rows.set_database_properties(connection, name, properties)
        return True

    def change_database(
        self, name: str, properties: Mapping[str, str], removed: Sequence[str]
    ) -> None:
        with self._sql.writing(f"change the database {name!r}") as connection:
            self._rows.remove_database_properties(connection, name, removed)
            self._rows.set_database_properties(connection, name, properties)

    def remove_database(self, name: str) -> list[str]:
        """Remove a database and return an empty list.

        If the database has tables, it is kept, and their names are returned.
        """
        with self._sql.writing(f"drop the database {name!r}") as connection:
            self._rows.keep_database(connection, name)
            tables = self._rows.tables(connection, name)
            if not tables:
                self._rows.remove_database(connection, name)
        return tables

    def views(self, database: str) -> list[str]:
        with self._sql.reading(f"list the views of {database!r}") as connection:
            return self._rows.views(connection, database)

    # ------------------------------------------------------------------ tables

    def tables(self, database: str) -> list[str]:
        with self._sql.reading(f"list the tables of {database!r}") as connection:
            return self._rows.tables(connection, database)

    def has_table(self, name: TableName) -> bool:
        with self._sql.reading(f"look up the table '{name}'") as connection:
            return self._rows.has_table(connection, name.database, name.table)

    def has_view(self, name: TableName) -> bool:
        with self._sql.reading(f"look for a view '{name}'") as connection:
            return self._rows.has_view(connection, name.database, name.table)

    def add_table(self, name: TableName, schema: TableSchema) -> None:
        with self._sql.writing(f"add the table '{name}'") as connection:
            self._keep_database(connection, name)
            self._rows.add_table(connection, name.database, name.table)
            self._rows.replace_properties(
                connection, name.database, name.table, self._shown_of(schema)
            )

    def synchronize(self, name: TableName, newest_schema: Callable[[], TableSchema]) -> bool:
        """Copy the options of a table from its newest schema to the SQL database, for other
        programs.

        Return False if the options were equal, or if the table is not listed. ``newest_schema``
        returns the schema. It is called inside the transaction, so that a concurrent call cannot
        overwrite newer options with older ones.
        """
        with self._sql.writing(f"store the options of '{name}'") as connection:
            if not self._rows.has_table(connection, name.database, name.table):
                return False
            wanted = self._shown_of(newest_schema())
            found = self._rows.properties(connection, name.database, name.table)
            if {key: value for key, value in found.items() if key not in MARKS} == wanted:
                return False
            self._rows.replace_properties(connection, name.database, name.table, wanted)
        return True

    def _shown_of(self, schema: TableSchema) -> dict[str, str]:
        """Return the options of a table that are copied into the SQL database for other programs.

        An option that is too long for its SQL column is left out, because a cut value would be
        wrong.
        """
        if not self._shows_options:
            return {}
        said = dict(schema.options)
        if schema.primary_keys:
            said["primary-key"] = ",".join(schema.primary_keys)
        if schema.partition_keys:
            said["partition"] = ",".join(schema.partition_keys)
        return {key: value for key, value in said.items() if fits(key, value)}

    # ------------------------------------------------------------------ unfinished changes

    def begin_drop(self, name: TableName, places: Iterable[TableName]) -> None:
        """Remove table ``name`` from the list, and record the directories of ``places`` for
        deletion.

        After an interrupted rename ``places`` has two names: the old directory also has files.
        Raise ``NotFoundError`` if the table is no longer listed.
        """
        with self._sql.writing(f"drop the table '{name}'") as connection:
            if not self._rows.remove_table(connection, name.database, name.table):
                raise self._gone(name)
            self._rows.remove_mark(connection, name.database, name.table, RENAMED_FROM)
            for place in places:
                self._rows.set_mark(connection, place.database, place.table, DROPPED, str(name))

    def begin_rename(self, old: TableName, new: TableName) -> None:
        """List a table under its new name, and record its old name until its files are moved.

        Raise ``NotFoundError`` if table ``old`` or the database of ``new`` is no longer listed.
        """
        with self._sql.writing(f"rename the table '{old}'") as connection:
            self._keep_database(connection, new)
            before, after = (old.database, old.table), (new.database, new.table)
            if not self._rows.rename_table(connection, before, after):
                raise self._gone(old)
            self._rows.set_mark(connection, *after, RENAMED_FROM, str(old))

    def undo_rename(self, old: TableName, new: TableName) -> None:
        """List a table under its old name again, and delete the record of the rename."""
        with self._sql.writing(f"undo the rename of '{old}'") as connection:
            self._rows.remove_mark(connection, new.database, new.table, RENAMED_FROM)
            self._rows.rename_table(
                connection, (new.database, new.table), (old.database, old.table)
            )

    def finish(self, name: TableName, mark: str) -> None:
        """Delete the record of a completed change; ``mark`` is the property that recorded it."""
        with self._sql.writing(f"complete the change of '{name}'") as connection:
            self._rows.remove_mark(connection, name.database, name.table, mark)

    def drops(self) -> set[TableName]:
        """Return the names whose directories may still have files of a dropped table."""
        return {*self._marked(DROPPED)}

    def renames(self) -> dict[TableName, TableName]:
        """Return the unfinished renames, as a dict from the new name to the old name."""
        marked = {new: _named(old) for new, old in self._marked(RENAMED_FROM).items()}
        return {new: old for new, old in marked.items() if old is not None}

    def unreadable_renames(self) -> set[TableName]:
        """Return the new names of unfinished renames whose recorded old name is not valid."""
        return {new for new, old in self._marked(RENAMED_FROM).items() if _named(old) is None}

    def renamed_from(self, name: TableName) -> TableName | None:
        """Return the old name of a table whose rename is unfinished.

        Return None for any other table, and if the recorded old name is not valid.
        """
        with self._sql.reading(f"look for unfinished changes of '{name}'") as connection:
            said = self._rows.properties(connection, name.database, name.table)
        return _named(said[RENAMED_FROM]) if RENAMED_FROM in said else None

    def _marked(self, mark: str) -> dict[TableName, str]:
        with self._sql.reading("look for unfinished changes") as connection:
            found = self._rows.marked(connection, mark)
        return {TableName(*name): value for name, value in found.items()}

    def _keep_database(self, connection: Connection, name: TableName) -> None:
        """Lock the row of the table's database until the transaction ends.

        ``NotFoundError`` is raised if another program has dropped the database.
        """
        if not self._rows.keep_database(connection, name.database):
            raise NotFoundError(
                f"'{name}' was not created: another program dropped database {name.database!r} "
                f"from {self.address} meanwhile. Create the database again, then repeat the call"
            )

    def _gone(self, name: TableName) -> NotFoundError:
        return NotFoundError(
            f"table '{name}' is no longer listed in {self.address}: another program dropped or "
            f"renamed it meanwhile. Check with list_tables({name.database!r})"
        )


def _named(text: str) -> TableName | None:
    try:
        return parse_plain_name(text)
    except InvalidRequestError:
        return None  # not written by this library
