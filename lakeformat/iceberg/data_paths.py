# SPDX-License-Identifier: Apache-2.0
"""Checks that no table property places data files in the directory of another table."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lakeformat.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    METADATA_PATH,
    is_metadata_file,
    read_metadata_file,
)
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, Storage
from lakeformat.storage.links import is_link, within
from lakeformat.storage.location import Location, location_of

__all__ = ["DATA_PATHS", "NEW_DATA_PATHS", "refuse_data_in_tables", "require_own_data_path"]

NEW_DATA_PATHS = ("write.data.path", "write.folder-storage.path")
"""The properties that can name the directory of new data files; the first one that is set counts.
"""
DATA_PATHS = (*NEW_DATA_PATHS, "write.object-storage.path")

_checked: set[tuple[Location, ExternalRoots, str, str | None]] = set()
"""Data paths that passed the check, with their tables; they are not checked again."""


def require_own_data_path(places: FilePlaces, metadata: TableMetadata) -> None:
    """Raise ``InvalidRequestError`` if new data files would be in the directory of another table.

    The data path of the table is checked here because another program may have set it. A path that
    passed is not checked again in this process.
    """
    properties = metadata.properties
    own = properties.get(METADATA_PATH)
    for name in [each for each in NEW_DATA_PATHS if each in properties][:1]:
        key = (places.location, places.external_roots, properties[name], own)
        if key not in _checked:
            refuse_data_in_tables(places, {name: properties[name]}, own, metadata.table_uuid)
            _checked.add(key)


def refuse_data_in_tables(
    places: FilePlaces,
    properties: Mapping[str, str | None],
    metadata_path: str | None,
    uuid: str | None,
) -> None:
    """Raise ``InvalidRequestError`` if ``properties`` place data files in the directory of another
    table, whose orphan removal would delete them.

    ``metadata_path`` is the table's property ``write.metadata.path``. A directory with metadata of
    the same ``uuid`` is a former directory of this table, not another table. Only directories in
    external roots and in the warehouse are checked. The warehouse is taken to be the directory two
    levels above this table.
    """
    for name in DATA_PATHS:
        address = properties.get(name) or ""
        location = _location(address)
        if location is None or places.location.holds(location):
            continue
        table = _table_above(places, address, _location(metadata_path), uuid)
        if table is not None:
            raise InvalidRequestError(
                f"the property {name!r} of {places.uri} names {location}, but {table} is the "
                "directory of another table. Orphan removal of that other table would delete the "
                "data files that this table writes there. Nothing was changed: choose a directory "
                "that no other table uses"
            )


def _location(address: str | None) -> Location | None:
    with suppress(InvalidRequestError):  # a write refuses an address that is not valid
        return location_of(address) if address else None
    return None


def _table_above(
    places: FilePlaces, address: str, own_metadata: Location | None, uuid: str | None
) -> Location | None:
    """Return the directory of another table at or above ``address``; None if there is none.

    Only directories in external roots and in the warehouse are checked. The warehouse is taken to
    be the directory two levels above this table.
    """
    location = location_of(address)
    walls = ExternalRoots((*places.external_roots.locations, places.location.above(2)))
    if not walls.allow(location):
        return None
    storage, path = walls.place(address, places.storage, places.uri)
    names, own = path.rstrip("/").split("/"), places.location.real()
    for levels in range(len(location.segments)):
        above = location.above(levels)
        is_own = above.below((METADATA,)) == own_metadata or above.real() == own
        directory = "/".join(names[: len(names) - levels])
        found = not is_own and walls.allow(above)
        if found and _is_table(within(storage, directory), directory, uuid):
            return above
    return None


def _is_table(storage: Storage, directory: str, own_uuid: str | None) -> bool:
    """Return True if a directory has metadata of a table, except metadata of table ``own_uuid``.

    A link to a directory of metadata does not count.
    """
    path = f"{directory}/{METADATA}"
    if is_link(storage, path):
        return False
    names: list[str] = []
    with suppress(AccessDeniedError):
        names.extend(each.name for each in storage.list(path))
    files = (f"{path}/{name}" for name in names if is_metadata_file(name))
    return HINT in names or any(not _is_of(storage, each, own_uuid) for each in files)


def _is_of(storage: Storage, path: str, uuid: str | None) -> bool:
    """Return True if a metadata file can be read and belongs to the table with the id ``uuid``."""
    unread = (AccessDeniedError, CorruptTableError, InvalidRequestError, NotFoundError)
    with suppress(*unread, UnsupportedError):
        return uuid is not None and read_metadata_file(storage, path).table_uuid == uuid
    return False
