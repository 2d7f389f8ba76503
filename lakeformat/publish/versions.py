# SPDX-License-Identifier: Apache-2.0
"""Reads and writes published metadata files, ``metadata/v<number>.metadata.json``.

Each change of the metadata is a new file with the next number, and no file changes afterwards. So
readers never find a half-written file, and readers that remember a file notice each change. The
numbers are above those of all snapshots, because Paimon's own publication uses the snapshot numbers
in the names of its files. The file ``version-hint.text`` names the current file for readers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
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
from lakeformat.iceberg.metadata.snapshot import PAIMON_IDENTITY
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.publish.own_files import own_files
from lakeformat.storage import NO_ROOTS, ExternalRoots, FileInfo, Storage
from lakeformat.tables.create_once import create_once
from lakeformat.types.sentence import sentence

__all__ = ["FIRST_NUMBER", "Newest", "PublishedVersions"]

_log = logging.getLogger(__name__)


FIRST_NUMBER = 1_000_000_001
"""The lowest number of a file; no table has so many snapshots."""
_LAST_NUMBER = (1 << 31) - 1
"""The highest number of a file: some readers store the number in 32 bits."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The result of listing the directory of the metadata once."""

    loaded: LoadedMetadata | None
    """The newest published metadata, or else the newest metadata of another program; None if there
    is neither.
    """
    next_number: int
    """The number of the next file. If another publication creates that file, this result is
    outdated.
    """
    sizes: Mapping[str, int] | None = None
    """The sizes of the files in the directory in bytes, by name; None if ``loaded`` is newer than
    the listing.
    """

    @property
    def is_behind_another(self) -> bool:
        """True if a file with a higher number was skipped, so readers may not find ``loaded``."""
        number = None if self.loaded is None else version_of(self.loaded.path)
        return number is not None and number + 1 < self.next_number


@dataclass(frozen=True, slots=True)
class PublishedVersions:
    """The published metadata files of one table."""

    storage: Storage
    root: str
    """The directory that contains the directory ``metadata``."""
    outside: ExternalRoots = NO_ROOTS
    """The location of the table, if its data files are not below ``root``; otherwise none."""

    @property
    def location(self) -> str:
        """The URI of the table, spelled as in its Iceberg metadata."""
        return location_at(self.storage, self.root).rstrip("/")

    @property
    def places(self) -> FilePlaces:
        """The object that resolves URIs in the metadata to paths in the storage."""
        return places_of(self.storage, self.root, self.location, self.outside)

    def shown(self) -> LoadedMetadata | None:
        """Return the metadata that readers find by the version hint; None if there is none.

        Raise ``InvalidRequestError`` if the name or the snapshots of the file show that no
        publication wrote it. Raise ``CorruptTableError`` if the file is damaged.
        """
        try:
            path = find_metadata_file(self.storage, self.root)
        except NotFoundError:
            return None
        return self._read(path)

    def newest(self) -> LoadedMetadata | None:
        """Return the metadata that ``look`` finds; None if there is none.

        The errors are those of ``look``.
        """
        return self.look().loaded

    def look(self) -> Newest:
        """Find the newest published metadata and the number of the next file.

        The files are read from the newest on, until a published one is found. Damaged files are
        skipped. A file of another program is also skipped if it has snapshots and all their ids
        equal their sequence numbers; otherwise, raise ``InvalidRequestError``. Raise this error
        also if the file numbers are used up. If there is no published file, the result has the
        newest file that was skipped but not damaged.
        """
        listed = self.storage.list(f"{self.root}/{METADATA}")
        files = _numbered(listed)
        highest = files[0][0] if files else 0
        if highest >= _LAST_NUMBER:
            raise InvalidRequestError(
                f"{self.storage.uri(files[0][1])} was written by another program, and has the "
                "highest number that readers accept, so no file can follow it: move it away, then "
                "publish again"
            )
        intact = self._intact(files)
        first = next(intact, None)
        found = first
        while found is not None and not self._is_published(found):
            found = next(intact, None)
        sizes = {each.name: each.size for each in listed}
        return Newest(found or first, max(highest + 1, FIRST_NUMBER), sizes)

    def next_row_id(self) -> int:
        """Return the highest ``next-row-id`` of all metadata files: all published rows have lower
        ids.

        The newest metadata file alone is not enough. A power cut may restore a deleted metadata
        file, and then an older file may have a higher ``next-row-id`` than the newest.
        """
        files = _numbered(self.storage.list(f"{self.root}/{METADATA}"))
        return max((each.metadata.next_row_id or 0 for each in self._intact(files)), default=0)

    def path(self, number: int) -> str:
        """Return the path of the metadata file with a number."""
        return f"{self.root}/{METADATA}/v{number}.metadata.json"

    def create(self, number: int, metadata: TableMetadata) -> LoadedMetadata | None:
        """Create the metadata file with a number; None if another publication was first.

        Raise ``CommitOutcomeUnknownError`` if the file may exist with this content.
        """
        path = self.path(number)
        try:
            is_created = create_once(self.storage, path, encode_metadata(metadata))
        except CommitOutcomeUnknownError:
            raise CommitOutcomeUnknownError(
                f"the storage did not confirm that it created {self.storage.uri(path)}, so the "
                "snapshot may or may not be published. Publish again: this publishes no snapshot "
                "twice"
            ) from None
        if not is_created:
            return None
        return LoadedMetadata(self.places, metadata, path)

    def point_to(
        self, current: LoadedMetadata, before: LoadedMetadata | None, *, must: bool = False
    ) -> None:
        """Write the number of ``current`` to the version hint, unless a newer file exists.

        If ``before`` is given, then delete the metadata files that are in the log of ``before`` but
        not in the log of ``current``. If the hint cannot be written, only log a warning. With
        ``must`` raise the error of the storage instead, because the caller then deletes files that
        readers of an older hint need.
        """
        number = version_of(current.path)
        assert number is not None
        if not self.storage.exists(self.path(number + 1)) and self._hinted() != number:
            if must:
                hint = f"{self.root}/{METADATA}/{HINT}"
                self.storage.overwrite(hint, str(number).encode())
            else:
                write_hint(self.storage, self.root, number)
        if before is not None:
            delete_old_metadata(_with_own_log(before), current)

    def delete_unlisted(self, current: LoadedMetadata) -> None:
        """Delete the metadata files with lower numbers than all files in the log of ``current``.

        Call this after all catalogs were pointed to ``current``, because until then a catalog may
        name one of these files. A failure is only logged.
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
                "could not delete an old metadata file of %s: %s If the next publication does not "
                "delete it, remove_orphans(dry_run=False) does",
                *(self.location, sentence(error)),
            )

    def _intact(self, files: Iterable[tuple[int, str]]) -> Iterator[LoadedMetadata]:
        paths = [path for _, path in files]
        if not paths and (shown := self.shown()) is not None:
            yield shown
        for path in paths:
            with suppress(CorruptTableError, NotFoundError):
                yield self._read(path)

    def _is_published(self, found: LoadedMetadata) -> bool:
        """Return True if a publication of this table wrote the metadata."""
        shown = found.metadata.current_snapshot
        at_home = found.metadata.location.rstrip("/") == self.location
        return at_home and shown is not None and PAIMON_IDENTITY in shown.summary

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
                f"{self.storage.uri(path)} was not published for this table: a published file "
                "is named v<number>.metadata.json, and its snapshots have ids that equal their "
                "sequence numbers. Move the directory 'metadata' away, then publish again"
            )
        return LoadedMetadata(self.places, metadata, path)


def _numbered(listed: Iterable[FileInfo]) -> list[tuple[int, str]]:
    """Return the numbers and paths of the metadata files, the highest number first."""
    found = ((version_of(info.path), info.path) for info in listed)
    return sorted(((number, path) for number, path in found if number is not None), reverse=True)


def _with_own_log(loaded: LoadedMetadata) -> LoadedMetadata:
    """Return the metadata without files of other programs in its log, because files in the log are
    deleted later.
    """
    metadata = loaded.metadata
    own = {*own_files(metadata, (each.metadata_file for each in metadata.metadata_log))}
    log = tuple(each for each in metadata.metadata_log if each.metadata_file in own)
    return replace(loaded, metadata=replace(metadata, metadata_log=log))
