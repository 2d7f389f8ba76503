# SPDX-License-Identifier: Apache-2.0
"""The published metadata files: ``metadata/v<snapshot>.metadata.json``, and the hint of readers."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.commit.create_once import create_once
from lakeformat.iceberg.commit.directory_pointer import write_hint
from lakeformat.iceberg.commit.old_metadata import delete_old_metadata
from lakeformat.iceberg.create.new_table import location_at
from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    find_metadata_file,
    find_version,
    read_metadata_file,
    version_of,
)
from lakeformat.iceberg.metadata.metadata_json import encode_metadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import NO_ROOTS, Storage

__all__ = ["PublishedVersions"]


@dataclass(frozen=True, slots=True)
class PublishedVersions:
    """The metadata files of one table; each has the number of the snapshot that it publishes."""

    storage: Storage
    root: str

    @property
    def location(self) -> str:
        """The address of the table, as metadata spells it."""
        return location_at(self.storage, self.root).rstrip("/")

    @property
    def places(self) -> FilePlaces:
        """The places of the table's files."""
        return places_of(self.storage, self.root, self.location, NO_ROOTS)

    def newest(self) -> LoadedMetadata | None:
        """Return the current metadata; None if nothing was published.

        Metadata that another program wrote for a table of its own is refused.
        """
        try:
            path = find_metadata_file(self.storage, self.root)
        except NotFoundError:
            return None
        return self._read(path)

    def find(self, number: int) -> LoadedMetadata | None:
        """Return the metadata that publishes one snapshot; None if there is none."""
        path = find_version(self.storage, self.root, number)
        return None if path is None else self._read(path)

    def path(self, number: int) -> str:
        """Return the path of the metadata file of a snapshot."""
        return f"{self.root}/{METADATA}/v{number}.metadata.json"

    def create(self, number: int, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish the metadata of a snapshot; None if another publication was first."""
        path = self.path(number)
        if not create_once(self.storage, path, encode_metadata(metadata)):
            return None
        return LoadedMetadata(self.places, metadata, path)

    def replace(self, number: int, metadata: TableMetadata) -> LoadedMetadata:
        """Publish the metadata of a snapshot in place of a file about another history."""
        path = self.path(number)
        self.storage.overwrite(path, encode_metadata(metadata))
        return LoadedMetadata(self.places, metadata, path)

    def point_to(self, current: LoadedMetadata, before: LoadedMetadata | None) -> None:
        """Show readers the newest file, and delete files that its log no longer names."""
        number = version_of(current.path)
        assert number is not None
        if not self.storage.exists(self.path(number + 1)) and self._hinted() != number:
            write_hint(self.storage, self.root, number)
        if before is not None:
            delete_old_metadata(before, current)

    def delete_above(self, number: int) -> None:
        """Delete the files of snapshots that no longer exist, as readers look for higher numbers.

        They are deleted from the highest on, so that a crash leaves no gap, behind which readers
        would miss a file.
        """
        found = [
            (version, info.path)
            for info in self.storage.list(f"{self.root}/{METADATA}")
            if (version := version_of(info.path)) is not None and version > number
        ]
        for _, path in sorted(found, reverse=True):
            self.storage.delete(path)

    def _hinted(self) -> int | None:
        try:
            text = self.storage.read(f"{self.root}/{METADATA}/{HINT}").decode("ascii", "replace")
        except NotFoundError:
            return None
        return int(text) if text.strip().isdecimal() else None

    def _read(self, path: str) -> LoadedMetadata:
        metadata = read_metadata_file(self.storage, path)
        ids = [(each.snapshot_id, each.sequence_number) for each in metadata.snapshots]
        if version_of(path) is None or not ids or any(one != other for one, other in ids):
            raise InvalidRequestError(
                f"{self.storage.uri(path)} was not published for this table: its snapshots are not "
                "those of the table. Move the directory 'metadata' away, then publish again"
            )
        return LoadedMetadata(self.places, metadata, path)
