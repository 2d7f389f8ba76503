# SPDX-License-Identifier: Apache-2.0
"""Reads and writes published metadata files, ``metadata/v<snapshot>.metadata.json``.

The file ``version-hint.text`` names the current one for readers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError, NotFoundError
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
from lakeformat.publish.own_files import own_files
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage

__all__ = ["PublishedVersions"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublishedVersions:
    """The published metadata files of one table; the name of each has the number of its
    snapshot.
    """

    storage: Storage
    root: str
    """The directory that contains the directory ``metadata``."""
    outside: ExternalRoots = NO_ROOTS
    """The table itself, if its data files are not below ``root``."""

    @property
    def location(self) -> str:
        """The URI of the table, written as in its Iceberg metadata."""
        return location_at(self.storage, self.root).rstrip("/")

    @property
    def places(self) -> FilePlaces:
        """Resolves URIs in the metadata to paths in the storage."""
        return places_of(self.storage, self.root, self.location, self.outside)

    def newest(self) -> LoadedMetadata | None:
        """Return the newest published metadata; None if nothing is published yet.

        Raise if another program wrote the metadata for an Iceberg table of its own.
        """
        try:
            path = find_metadata_file(self.storage, self.root)
        except NotFoundError:
            return None
        return self._read(path)

    def newest_intact(self) -> LoadedMetadata | None:
        """Return the newest metadata that can be read; None if there is none.

        A power cut inside ``replace`` may leave a file without content.
        """
        try:
            return self.newest()
        except CorruptTableError:
            return next(self.intact(), None)

    def intact(self) -> Iterator[LoadedMetadata]:
        """Yield all metadata that can be read, the highest number first."""
        listed = self.storage.list(f"{self.root}/{METADATA}")
        found = (version_of(info.path) for info in listed)
        numbers = sorted((each for each in found if each is not None), reverse=True)
        yield from filter(None, map(self.find, numbers))

    def find(self, number: int) -> LoadedMetadata | None:
        """Return the metadata published for a snapshot; None if it is not published."""
        path = find_version(self.storage, self.root, number)
        try:
            return None if path is None else self._read(path)
        except CorruptTableError:
            return None

    def path(self, number: int) -> str:
        """Return the path of the metadata file for a snapshot."""
        return f"{self.root}/{METADATA}/v{number}.metadata.json"

    def create(self, number: int, metadata: TableMetadata) -> LoadedMetadata | None:
        """Create the metadata file of a snapshot; None if another publication was first."""
        path = self.path(number)
        if not create_once(self.storage, path, encode_metadata(metadata)):
            return self.replace(number, metadata) if self._is_damaged(path) else None
        return LoadedMetadata(self.places, metadata, path)

    def replace(self, number: int, metadata: TableMetadata) -> LoadedMetadata:
        """Overwrite the metadata file of a snapshot, for example after a rollback."""
        path = self.path(number)
        self.storage.overwrite(path, encode_metadata(metadata))
        return LoadedMetadata(self.places, metadata, path)

    def point_to(self, current: LoadedMetadata, before: LoadedMetadata | None) -> None:
        """Set the version hint to this file, and delete old metadata files that its log no longer
        lists.
        """
        number = version_of(current.path)
        assert number is not None
        if not self.storage.exists(self.path(number + 1)) and self._hinted() != number:
            write_hint(self.storage, self.root, number)
        if before is not None:
            delete_old_metadata(_with_own_log(before), current)

    def delete_unlisted(self, current: LoadedMetadata) -> None:
        """Delete the files that are older than all in the log of the current one.

        They were kept while a catalog named an old one.
        """
        log = current.metadata.metadata_log
        listed = [
            version_of(each) for each in (current.path, *(each.metadata_file for each in log))
        ]
        number = min(each for each in listed if each is not None) if log else 0
        try:
            while (
                number and (path := find_version(self.storage, self.root, number - 1)) is not None
            ):
                self.storage.delete(path)
                number -= 1
        except LakeError as error:
            _log.warning(
                "could not delete an old metadata file of %s: %s. The next publication deletes it",
                *(self.location, error),
            )

    def delete_above(self, number: int) -> None:
        """Delete the metadata files of higher snapshot numbers, which the table does not have any
        more.

        Readers look for the next number until a file is missing. So the highest number is deleted
        first: after a crash no gap hides a remaining file. Before that the version hint is set, so
        that it always names an existing file; if it cannot be written, nothing is deleted.
        """
        found = [
            (version, info.path)
            for info in self.storage.list(f"{self.root}/{METADATA}")
            if (version := version_of(info.path)) is not None and version > number
        ]
        if found and self._hinted() != number:
            self.storage.overwrite(f"{self.root}/{METADATA}/{HINT}", str(number).encode())
        for _, path in sorted(found, reverse=True):
            self.storage.delete(path)

    def _is_damaged(self, path: str) -> bool:
        try:
            read_metadata_file(self.storage, path)
        except CorruptTableError:
            return True
        return False

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


def _with_own_log(loaded: LoadedMetadata) -> LoadedMetadata:
    """Return the metadata with only those files in its log that a publication may delete."""
    metadata = loaded.metadata
    own = {*own_files(metadata, (each.metadata_file for each in metadata.metadata_log))}
    log = tuple(each for each in metadata.metadata_log if each.metadata_file in own)
    return replace(loaded, metadata=replace(metadata, metadata_log=log))
