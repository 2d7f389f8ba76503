# SPDX-License-Identifier: Apache-2.0
"""The metadata of a table, as it was read from one metadata file."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.metadata.metadata_file import read_metadata_file
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, Storage

__all__ = ["LoadedMetadata", "load_metadata"]


@dataclass(frozen=True, slots=True)
class LoadedMetadata:
    """The content of one metadata file, and the places of the files that it names."""

    places: FilePlaces
    metadata: TableMetadata
    path: str
    """The path of the metadata file in the table's storage."""

    @property
    def metadata_file(self) -> str:
        """The URI of the metadata file, written as in the metadata log."""
        below = self.path.removeprefix(self.places.root)
        return self.metadata.location.rstrip("/") + below


def load_metadata(
    storage: Storage, root: str, path: str, external_roots: ExternalRoots
) -> LoadedMetadata:
    """Read a metadata file of the table in directory ``root``."""
    metadata = read_metadata_file(storage, path)
    places = places_of(storage, root, metadata.location, external_roots)
    return LoadedMetadata(places, metadata, path)
