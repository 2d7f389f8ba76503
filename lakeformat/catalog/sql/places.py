# SPDX-License-Identifier: Apache-2.0
"""Finds the directories of databases and tables of a SQL catalog."""

from __future__ import annotations

from lakeformat.catalog.names import TableName
from lakeformat.catalog.outside import location_in
from lakeformat.catalog.sql.listing import Listing
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.layout import DATABASE_SUFFIX, TableLayout, database_directory
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids, table_exists
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import LockedCreation, Storage, resolve
from lakeformat.storage.location import one_spelling

__all__ = ["LOCATION", "Places"]

LOCATION = "location"
"""The key of the database property that holds the location; Java's catalog uses the same key."""


class Places:
    """The storage and the directory of each database and table of a SQL catalog.

    All databases in the same storage use one ``Storage`` object.
    """

    def __init__(self, storage: Storage, root: str, listing: Listing) -> None:
        self._storage = storage
        self._root = root
        self._listing = listing
        self._elsewhere: dict[str, Storage] = {}

    def default_location(self, database: str) -> str:
        """Return the location of a database that was created without a ``location``."""
        directory = database_directory(self._root, database)
        # Java reads this text as a path, and would take %20 in a URI literally.
        return directory if self._storage.scheme == "file" else self._storage.uri(directory)

    def of_database(self, database: str) -> tuple[Storage, str]:
        """Return the storage of a database, and the path of its directory in this storage."""
        properties = self._listing.database_properties(database)
        return self.at(database, properties.get(LOCATION) or "")

    def at(self, database: str, location: str) -> tuple[Storage, str]:
        """Return the storage and the path of a location; "" is the default location of the
        database.

        The location is a path or a URI, as this library or Java stored it.
        """
        if location in ("", self.default_location(database)):
            return self._storage, database_directory(self._root, database)
        storage, path = resolve(location.rstrip("/"), self._storage)
        if storage is not self._storage:
            key = one_spelling(storage.uri(""))
            storage = self._elsewhere.setdefault(key, self._guarded(storage))
        return storage, path

    def refuse_shared(self, database: str, location: str) -> None:
        """Raise ``InvalidRequestError`` if a location contains the warehouse, or overlaps with the
        directory of another database, even if that database is not listed.

        With an overlap both databases would list the same tables, and a drop of one would delete
        files of the other.
        """
        mine = location_in(*self.at(database, location))
        above = location_in(self._storage, self._root)
        below = mine.segments[len(above.segments) :] if above.holds(mine) else ()
        taken = {other: self.of_database(other) for other in self._listing.databases()}
        default = below[0] if below else ""
        if default.endswith(DATABASE_SUFFIX) and default != f"{database}{DATABASE_SUFFIX}":
            other = default.removesuffix(DATABASE_SUFFIX)
            taken.setdefault(other, (self._storage, database_directory(self._root, other)))
        taken.pop(database, None)
        for other, place in taken.items():
            if mine.overlaps(location_in(*place)):
                raise InvalidRequestError(
                    f"database {database!r} cannot have the location {location}, because it "
                    f"overlaps with {place[0].uri(place[1])}, the directory of database {other!r}: "
                    "choose a directory that no other database uses"
                )
        if mine.holds(above):
            raise InvalidRequestError(
                f"the location {location} of database {database!r} holds the warehouse "
                f"{self._storage.uri(self._root)}: choose a directory that holds only this database"
            )

    def _guarded(self, storage: Storage) -> Storage:
        """Return ``storage``. If the warehouse publishes under a lock, the result publishes under
        the same lock.
        """
        near = self._storage
        if not isinstance(near, LockedCreation) or isinstance(storage, LockedCreation):
            return storage
        return LockedCreation(storage, near._lock, storage.uri(""))

    def of_table(self, name: TableName) -> tuple[Storage, TableLayout]:
        """Return the storage of a table, and the paths of its main branch."""
        storage, directory = self.of_database(name.database)
        return storage, TableLayout(f"{directory}/{name.table}")

    def has_files(self, name: TableName) -> bool:
        """Return True if the directory of ``name`` has a table; its files may be damaged."""
        return table_exists(*self.of_table(name))

    def newest_schema(self, name: TableName) -> TableSchema:
        """Return the newest schema of an existing table."""
        storage, layout = self.of_table(name)
        return read_schema(storage, layout, max(schema_ids(storage, layout)))

    def tables_in(self, database: str) -> list[TableName]:
        """Return the tables in the directory of a database, even if the catalog does not list
        them.
        """
        storage, directory = self.of_database(database)
        return [TableName(database, table) for table in _tables_below(storage, directory)]

    def databases_with_tables(self) -> list[str]:
        """Return the names of the databases that have a table in their default directory.

        Only the storage is searched, so databases that the catalog does not list are found, too.
        """
        return [
            entry.name.removesuffix(DATABASE_SUFFIX)
            for entry in self._storage.list(self._root)
            if entry.is_directory
            and entry.name.endswith(DATABASE_SUFFIX)
            and not entry.name.startswith(".")
            and _tables_below(self._storage, entry.path)
        ]


def _tables_below(storage: Storage, directory: str) -> list[str]:
    return [
        entry.name
        for entry in storage.list(directory)
        if entry.is_directory
        and not entry.name.startswith(".")  # hidden: an interrupted drop
        and table_exists(storage, TableLayout(entry.path))
    ]
