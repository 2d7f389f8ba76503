# SPDX-License-Identifier: Apache-2.0
"""The interface of a catalog that names the published metadata of a table.

The module that opens tables passes the catalogs to the publication, so that this package imports no
client of a catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.handle import TableHandle
from lakeformat.storage.location import location_of

__all__ = ["CatalogEntry", "Named", "Targets", "is_ours"]


@dataclass(frozen=True, slots=True)
class Named:
    """A table of a catalog: the address and the content of its metadata file."""

    address: str
    """The URI of the metadata file."""
    metadata: TableMetadata | None
    """The content; None if the file does not exist or is not one of the published files."""


class CatalogEntry(Protocol):
    """One table of one catalog."""

    @property
    def name(self) -> str:
        """The table and its catalog, for messages."""
        ...

    def find(self) -> Named | None:
        """Return the metadata that the catalog names; None if it does not have the table."""
        ...

    def shows(self, named: Named, newest: LoadedMetadata) -> bool:
        """Return True if readers of the catalog see the state of ``newest``."""
        ...

    def create(self, newest: LoadedMetadata) -> bool:
        """Add the table to the catalog; return False if another program added it in the meantime.

        After ``CommitOutcomeUnknownError`` the table may have been added.
        """
        ...

    def move(self, named: Named, newest: LoadedMetadata) -> bool | None:
        """Point the catalog to ``newest``; return False if it no longer points to ``named``.

        Return None if the entry was moved, but the catalog could not check that it still pointed to
        ``named``: the move may have replaced a newer state.

        After ``CommitOutcomeUnknownError`` the entry may have been moved.
        """
        ...

    def remove(self) -> None:
        """Remove the table from the catalog; no file is deleted."""
        ...


class Targets(Protocol):
    """The catalogs named in the options of a table and of its connection."""

    def require(self, handle: TableHandle) -> None:
        """Raise ``UnsupportedError`` if an option is missing or wrong; no catalog is asked."""
        ...

    def entries(self, handle: TableHandle) -> tuple[CatalogEntry, ...]:
        """Return the entries that the options of the table ask for, in all catalogs."""
        ...


def is_ours(named: Named, newest: LoadedMetadata) -> bool:
    """Return True if ``named`` and ``newest`` are the same table: with equal UUID and location.

    If the content of the file is unknown, return True if both files are in the same directory.
    """
    if named.metadata is None:
        here = location_of(newest.metadata_file).above(1)
        return location_of(named.address).above(1) == here
    there, ours = named.metadata, newest.metadata
    return there.table_uuid == ours.table_uuid and location_of(there.location) == location_of(
        ours.location
    )
