# SPDX-License-Identifier: Apache-2.0
"""The path metastore: a table is a directory ``<warehouse>/<database>/<table>`` with metadata
files.

Directories ``<database>.db`` belong to Paimon databases and are ignored. So one warehouse can hold
tables of both formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

from lakeformat.catalog.iceberg.catalog_files import CatalogFiles
from lakeformat.catalog.iceberg.metastore import Describe, Metastore, changed_meanwhile
from lakeformat.catalog.leftovers import dropped_sibling
from lakeformat.catalog.names import TableName, check_name, is_name
from lakeformat.catalog.table_format import is_iceberg
from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.create.new_table import create_at_path, location_at
from lakeformat.iceberg.file_places import places_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, digest_of
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    find_metadata_file,
    read_metadata_file,
)
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import bool_property
from lakeformat.paimon.layout import DATABASE_SUFFIX
from lakeformat.storage import FileInfo, Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.storage.empty_directory import keep_directory, remove_empty_directory
from lakeformat.storage.links import is_link, refuse_link, within
from lakeformat.storage.move_directory import MovesDirectories, mover
from lakeformat.tables.parallel import in_parallel

__all__ = ["PathMetastore"]

_COLLECTED = "gc.enabled"


class PathMetastore(Metastore):
    """A metastore whose databases and tables are directories of the warehouse."""

    is_directory = True

    def __init__(self, files: CatalogFiles, environment: Environment) -> None:
        assert files.storage is not None
        self._storage = files.storage
        self._root = files.root
        self._external_roots = files.external_roots
        self._environment = environment

    def databases(self) -> list[str]:
        """Return the names of the directories in the warehouse that are databases of Iceberg
        tables.

        Directories of Paimon databases, and tables directly in the warehouse, are left out.
        """
        return [
            entry.name
            for entry in self._storage.list(self._root)
            if entry.is_directory
            and is_name("database", entry.name)  # names of Paimon databases have a dot
            and not is_iceberg(self._storage, entry.path)
        ]

    def has_database(self, database: str) -> bool:
        """Return True if the database's directory exists."""
        return self._storage.directory_exists(self._directory(database))

    def database_properties(self, database: str) -> dict[str, str]:
        """Return the only property of a database: its location."""
        return {"location": self._storage.uri(self._directory(database))}

    def make_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create the directory of a database; return False if it exists.

        A directory cannot store ``properties``: they raise ``UnsupportedError``.
        """
        if properties:
            raise UnsupportedError(
                f"the path metastore cannot store properties of databases ({', '.join(properties)})"
                ": leave them out"
            )
        there = self.has_database(database)
        self._storage.make_directory(self._directory(database))
        return not there

    def remove_database(self, database: str) -> None:
        """Delete the directory of a database if it is empty; else raise ``InvalidRequestError``."""
        directory = self._directory(database)
        if not remove_empty_directory(self._storage, directory):
            names = [info.name for info in self._storage.list(directory)]
            raise InvalidRequestError(
                f"database {database!r} has no table, but other files: {', '.join(names[:5])}"
                f"{', …' if len(names) > 5 else ''}. Delete them first"
            )

    def tables(self, database: str) -> list[str]:
        """Return the names of the directories in the database that contain Iceberg metadata."""
        storage = self._storage
        return [
            entry.name
            for entry in storage.list(self._directory(database))
            if entry.is_directory
            and is_name("table", entry.name)  # a hidden directory is an interrupted drop
            and is_iceberg(within(storage, entry.path), entry.path)
        ]

    def make_table(self, name: TableName, describe: Describe) -> bool:
        """Write the first metadata file of a table; return False if the table exists.

        Of two programs that create the same table at once, one gets False.
        """
        root = self._root_of(name)
        metadata = describe(location_at(self._storage, root))
        places = places_of(self._storage, root, metadata.location, self._external_roots)
        if self.has_refused_paths(name, places, metadata):
            return False
        try:
            create_at_path(self._storage, root, metadata)
        except AlreadyExistsError:
            return False
        return True

    def remove_table(
        self, name: TableName, *, purge: bool, known: LoadedMetadata | None = None
    ) -> None:
        """Delete the directory of a table.

        Without ``known``, the errors of ``require_removable`` are raised; a caller with ``known``
        must have called that method before.

        If the storage can rename directories, the directory is first renamed to a hidden name, so
        that readers never see a part of the table. If the directory has another table than
        ``known`` by then, the rename is undone, and ``CommitConflictError`` is raised.
        """
        if known is None:
            self.require_removable(name, purge=purge)
        self._remove(name, lambda hidden: known is None or _has(self._storage, hidden, known))

    def _remove(self, name: TableName, is_meant: Callable[[str], bool]) -> None:
        """Delete the directory of a table. ``is_meant`` returns True if a directory has the table
        to remove; else ``CommitConflictError`` is raised, and the directory is kept.
        """
        storage, root = self._storage, self._root_of(name)
        at_once = mover(storage)
        if at_once is not None:
            hidden = dropped_sibling(root, self._environment.new_id)
            at_once.rename_directory(root, hidden)
            _require(at_once, name, root, hidden, is_meant)
            storage.delete_directory(hidden)
            return
        if not is_meant(root):
            raise changed_meanwhile(name)
        keep_directory(storage, self._directory(name.database))
        for info in storage.list(root):
            # Metadata is deleted last: until then the directory is a table.
            if info.name != METADATA:
                remove = storage.delete_directory if info.is_directory else storage.delete
                remove(info.path)
        _delete_metadata_but_the_current(storage, root)
        storage.delete_directory(root)

    def has_other_files(self, name: TableName) -> bool:
        """Return True if the directory of a table contains files other than metadata."""
        return _has_data(self._storage, self._root_of(name))

    def remove_new_table(self, name: TableName) -> bool:
        """Delete the directory of a table that is still empty, and return True.

        If the table has a snapshot by now, or if its directory contains files other than metadata,
        keep the directory and return False.
        """
        if self.has_other_files(name):
            return False
        self.require_removable(name, purge=True)
        try:
            self._remove(name, lambda hidden: _is_new(self._storage, hidden))
        except CommitConflictError:
            return False
        return True

    def rename_table(self, old: TableName, new: TableName) -> NoReturn:
        """Raise ``UnsupportedError``, as ``require_renamable`` does."""
        self.require_renamable(old, new)

    def require_renamable(self, old: TableName, new: TableName) -> NoReturn:
        """Raise ``UnsupportedError``: the metadata names every file by its URI, so no file can be
        moved.
        """
        raise UnsupportedError(
            f"cannot rename '{old}' in a catalog of directories, because the metadata names each "
            f"file by its URI, such as {self._storage.uri(self._root_of(old))}/…: create a table "
            f"'{new}', and copy the rows"
        )

    def pointer(self, name: TableName) -> DirectoryPointer:
        """Return the pointer to the metadata in the directory of a table."""
        root = self._root_of(name)
        return DirectoryPointer(
            within(self._storage, root), root, self._external_roots, self._environment
        )

    def beside(self, base: TableName, table: str, database: str) -> TableName:
        """Return the name of the change store, in the database of its base store.

        ``database``, which the base store records in a property, is ignored: in a copied directory
        this property still names the old database.
        """
        return TableName(base.database, table)

    def pointer_beside(self, name: TableName, base: TableName) -> DirectoryPointer:
        """Return what ``pointer`` returns, for the change store ``name`` of the table ``base``.

        Raise ``InvalidRequestError`` if the directory of ``name`` or ``base`` is a link.
        """
        for each in (name, base):
            root = self._root_of(each)
            if is_link(self._storage, root):
                refuse_link(self._directory(each.database), root)
        return self.pointer(name)

    def require_removable(self, name: TableName, *, purge: bool) -> None:
        """Raise ``UnsupportedError`` if ``purge`` is False: a drop always deletes the files.

        Raise it also for Iceberg metadata that is published for a Paimon table. Raise
        ``InvalidRequestError`` if the property ``gc.enabled`` is false: another table may use the
        files.
        """
        if not purge:
            raise UnsupportedError(
                f"table '{name}' cannot be dropped without its files: in this catalog the "
                f"directory {self._storage.uri(self._root_of(name))} is the table. Pass purge=True "
                "to delete this directory with all its files, or move it away"
            )
        try:
            metadata = self.pointer(name).load().metadata
        except NotFoundError:
            if self.has_other_files(name):
                raise
            return  # an interrupted removal has deleted the metadata last
        metadata.refuse_published()
        if not bool_property(metadata.properties, _COLLECTED, default=True):
            raise InvalidRequestError(
                f"the files of table '{name}' are not deleted, because its property {_COLLECTED!r} "
                "is false: another table may use them. Set the property to true if you are sure "
                "that no other table uses them"
            )

    def _root_of(self, name: TableName) -> str:
        check_name("table", name.table)
        return f"{self._directory(name.database)}/{name.table}"

    def _directory(self, database: str) -> str:
        if database.endswith(DATABASE_SUFFIX):
            raise InvalidRequestError(
                f"a catalog of Iceberg tables has no database {database!r}, because directories "
                f"that end in {DATABASE_SUFFIX} are databases of Paimon tables: choose a name "
                f"without {DATABASE_SUFFIX}. To open the Paimon database "
                f"{database.removesuffix(DATABASE_SUFFIX)!r}, open the catalog with format='paimon'"
            )
        check_name("database", database)
        return f"{self._root}/{database}"


def _delete_metadata_but_the_current(storage: Storage, root: str) -> None:
    """Delete all files of the metadata directory except the current metadata file.

    With this file the directory is still a table. So if the process dies before the caller deletes
    the directory, the table can be dropped again.
    """
    with suppress(InvalidRequestError, NotFoundError):  # no file is current
        current, hint = find_metadata_file(storage, root), f"{root}/{METADATA}/{HINT}"
        listed = storage.list(f"{root}/{METADATA}")
        files = [each.path for each in listed if not each.is_directory]
        in_parallel(storage.delete, [each for each in files if each not in (current, hint)])
        storage.delete(hint)  # last: it decides between two files of the highest number


def _require(
    at_once: MovesDirectories,
    name: TableName,
    root: str,
    hidden: str,
    is_meant: Callable[[str], bool],
) -> None:
    """Raise ``CommitConflictError`` unless the directory ``hidden`` has the table to remove. The
    caller has renamed ``root`` to ``hidden``; after an error the rename is undone.
    """
    try:
        if not is_meant(hidden):
            raise changed_meanwhile(name)
    except LakeError:
        at_once.rename_directory(hidden, root)
        raise


def _has(storage: Storage, root: str, known: LoadedMetadata) -> bool:
    """Return True if the directory ``root`` has the table with the metadata ``known``."""
    storage, name = within(storage, root), known.path.rpartition("/")[2]
    with suppress(NotFoundError):
        # One request is enough, unless the table has changed meanwhile.
        if digest_of(storage.read(f"{root}/{METADATA}/{name}", LARGE_FILE)) == known.digest:
            return True
    found = _current(storage, root)
    return found is not None and found.table_uuid == known.metadata.table_uuid


def _is_new(storage: Storage, root: str) -> bool:
    """Return True if the directory ``root`` has no metadata, or if its table has no snapshots."""
    found = _current(within(storage, root), root)
    return found is None or not found.snapshots


def _current(storage: Storage, root: str) -> TableMetadata | None:
    with suppress(NotFoundError):
        return read_metadata_file(storage, find_metadata_file(storage, root))
    return None


def _has_data(storage: Storage, root: str) -> bool:
    return any(_has_file(storage, info) for info in storage.list(root) if info.name != METADATA)


def _has_file(storage: Storage, info: FileInfo) -> bool:
    if not info.is_directory:
        return True
    return any(_has_file(storage, each) for each in storage.list(info.path))
