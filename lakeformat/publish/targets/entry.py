# SPDX-License-Identifier: Apache-2.0
"""The contract of a catalog that names the published metadata of a table.

The package that opens tables gives the catalogs to the publication, which imports no client.
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
    """The metadata that a catalog names for a table."""

    address: str
    """The address of the metadata file."""
    metadata: TableMetadata | None
    """None if the file does not exist, or if it is not among the published ones."""


class CatalogEntry(Protocol):
    """One table of one catalog."""

    @property
    def name(self) -> str:
        """The table and its catalog, for messages."""
        ...

    def find(self) -> Named | None:
        """Return what the catalog names; None if it does not have the table."""
        ...

    def shows(self, named: Named, newest: LoadedMetadata) -> bool:
        """Return True if readers of the catalog see the state of ``newest``."""
        ...

    def create(self, newest: LoadedMetadata) -> bool:
        """Add the table to the catalog; return False if another program was first."""
        ...

    def move(self, named: Named, newest: LoadedMetadata) -> bool:
        """Let the catalog show ``newest``; return False if it no longer has ``named``."""
        ...

    def remove(self) -> None:
        """Remove the table from the catalog; no file is deleted."""
        ...


class Targets(Protocol):
    """The catalogs that the options of a table and of its connection name."""

    def require(self, handle: TableHandle) -> None:
        """Raise ``UnsupportedError`` if an option is missing or wrong; no catalog is asked."""
        ...

    def entries(self, handle: TableHandle) -> tuple[CatalogEntry, ...]:
        """Return the entries of a table."""
        ...


def is_ours(named: Named, newest: LoadedMetadata) -> bool:
    """Return True if a catalog names metadata of the same table, at the same place."""
    if named.metadata is None:
        here = location_of(newest.metadata_file).above(1)
        return location_of(named.address).above(1) == here
    there, ours = named.metadata, newest.metadata
    return there.table_uuid == ours.table_uuid and location_of(there.location) == location_of(
        ours.location
    )
