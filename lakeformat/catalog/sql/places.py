"""Where databases and tables lie: below the warehouse, or where their database says."""

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
"""The property of a database that says where it lies, here and in Java."""


class Places:
    """From names to storages and directories; a storage is opened once."""

    def __init__(self, storage: Storage, root: str, listing: Listing) -> None:
        self._storage = storage
        self._root = root
        self._listing = listing
        self._elsewhere: dict[str, Storage] = {}

    def default_location(self, database: str) -> str:
        """What is written down where nothing else is said."""
        directory = database_directory(self._root, database)
        # Java takes a path literally where we would write %20 into a URI.
        return directory if self._storage.scheme == "file" else self._storage.uri(directory)

    def of_database(self, database: str) -> tuple[Storage, str]:
        """The storage and the directory of a database."""
        properties = self._listing.database_properties(database)
        return self.at(database, properties.get(LOCATION) or "")

    def at(self, database: str, location: str) -> tuple[Storage, str]:
        """The storage and directory of a database that says where it lies, as we or Java do."""
        if location in ("", self.default_location(database)):
            return self._storage, database_directory(self._root, database)
        storage, path = resolve(location.rstrip("/"), self._storage)
        if storage is not self._storage:
            key = one_spelling(storage.uri(""))
            storage = self._elsewhere.setdefault(key, self._guarded(storage))
        return storage, path

    def refuse_shared(self, database: str, location: str) -> None:
        """Refuse a directory that is, holds or lies in one of another database.

        Each would list, and drop with all their files, the tables of the other.
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
                    f"the location {location} of database {database!r} and that of {other!r}, "
                    f"{place[0].uri(place[1])}, are one directory, or one lies in the other: choose"
                    " a directory of its own"
                )
        if mine.holds(above):
            raise InvalidRequestError(
                f"the location {location} of database {database!r} holds the warehouse "
                f"{self._storage.uri(self._root)}: choose a directory of its own"
            )

    def _guarded(self, storage: Storage) -> Storage:
        """Whoever vouches for being alone, with ``unsafe.single-writer``, does so everywhere."""
        near = self._storage
        if not isinstance(near, LockedCreation) or isinstance(storage, LockedCreation):
            return storage
        return LockedCreation(storage, near._lock, storage.uri(""))

    def of_table(self, name: TableName) -> tuple[Storage, TableLayout]:
        """The storage of a table and its main branch there."""
        storage, directory = self.of_database(name.database)
        return storage, TableLayout(f"{directory}/{name.table}")

    def has_files(self, name: TableName) -> bool:
        """Whether a table, sound or damaged, is in the place of a name."""
        return table_exists(*self.of_table(name))

    def newest_schema(self, name: TableName) -> TableSchema:
        """The schema in force; the table has files."""
        storage, layout = self.of_table(name)
        return read_schema(storage, layout, max(schema_ids(storage, layout)))

    def tables_in(self, database: str) -> list[TableName]:
        """The tables a database's directory holds, listed or not."""
        storage, directory = self.of_database(database)
        return [TableName(database, table) for table in _tables_below(storage, directory)]

    def databases_with_tables(self) -> list[str]:
        """Database directories of the warehouse that hold a table, listed or not."""
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
        and not entry.name.startswith(".")  # half dropped
        and table_exists(storage, TableLayout(entry.path))
    ]
