# SPDX-License-Identifier: Apache-2.0
"""Checks the directories for data files that table properties name outside of the table."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lakeformat.errors import AccessDeniedError, InvalidRequestError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    is_metadata_file,
)
from lakeformat.storage import Storage
from lakeformat.storage.location import Location, location_of

__all__ = ["DATA_PATHS", "refuse_data_in_tables"]

DATA_PATHS = ("write.data.path", "write.folder-storage.path", "write.object-storage.path")


def refuse_data_in_tables(
    places: FilePlaces, properties: Mapping[str, str | None], metadata_path: str | None
) -> None:
    """Raise ``InvalidRequestError`` if ``properties`` name a directory for data files in the
    directory of another table, whose orphan removal would delete these files.

    ``metadata_path`` is the table's property ``write.metadata.path``. Only directories that an
    external root allows are read, because a table cannot write into any other one.
    """
    for name in DATA_PATHS:
        address = properties.get(name) or ""
        location = _location(address)
        if location is None or places.location.holds(location):
            continue
        if (table := _table_above(places, address, _location(metadata_path))) is not None:
            raise InvalidRequestError(
                f"the property {name!r} of {places.uri} names {location}, but {table} is the "
                "directory of another table, whose orphan removal would delete the files. Nothing "
                "was changed: choose a directory that no other table uses"
            )


def _location(address: str | None) -> Location | None:
    with suppress(InvalidRequestError):  # a write refuses an address that is not valid
        return location_of(address) if address else None
    return None


def _table_above(
    places: FilePlaces, address: str, own_metadata: Location | None
) -> Location | None:
    """Return the directory of a table at or above ``address``, below an external root."""
    location = location_of(address)
    roots = places.external_roots
    if not roots.allow(location):
        return None
    storage, path = roots.place(address, places.storage, places.uri)
    names = path.rstrip("/").split("/")
    for levels in range(len(location.segments)):
        above = location.above(levels)
        is_own = above.below((METADATA,)) == own_metadata
        directory = "/".join(names[: len(names) - levels])
        if roots.allow(above) and not is_own and _has_metadata(storage, directory):
            return above
    return None


def _has_metadata(storage: Storage, directory: str) -> bool:
    with suppress(AccessDeniedError):
        names = (each.name for each in storage.list(f"{directory}/{METADATA}"))
        return any(name == HINT or is_metadata_file(name) for name in names)
    return False
