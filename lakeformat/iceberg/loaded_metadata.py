# SPDX-License-Identifier: Apache-2.0
"""The metadata of a table, read from one metadata file."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.metadata.metadata_file import decode_metadata, metadata_directory
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["LoadedMetadata", "digest_of", "load_metadata"]


@dataclass(frozen=True, slots=True)
class LoadedMetadata:
    """The content of one metadata file, and the places of the files that it names."""

    places: FilePlaces
    metadata: TableMetadata
    path: str
    """The path of the metadata file in the table's storage."""
    digest: bytes | None = field(default=None, repr=False, compare=False)
    """The digest of the content of the file; None if it was not computed."""

    @property
    def metadata_file(self) -> str:
        """The URI of the metadata file, written as in the metadata log."""
        below = self.path.removeprefix(f"{self.places.root}/")
        if below == self.path:  # the property write.metadata.path names another directory
            return f"{metadata_directory(self.metadata)}/{self.path.rpartition('/')[2]}"
        return f"{self.metadata.location.rstrip('/')}/{below}"


def load_metadata(
    storage: Storage, root: str, path: str, external_roots: ExternalRoots
) -> LoadedMetadata:
    """Read a metadata file of the table in directory ``root``.

    Raise ``NotFoundError`` if the file does not exist, ``CorruptTableError`` if it is malformed,
    and ``InvalidRequestError`` if the table was moved or copied to ``root``. Raise
    ``UnsupportedError`` for a newer format version or an encrypted table.
    """
    content = storage.read(path, LARGE_FILE)
    metadata = decode_metadata(content, storage.uri(path))
    places = places_of(storage, root, metadata.location, external_roots)
    return LoadedMetadata(places, metadata, path, digest_of(content))


def digest_of(content: bytes) -> bytes:
    """Return a digest of a metadata file; files with the same digest have the same content."""
    return blake2b(content, digest_size=16).digest()
