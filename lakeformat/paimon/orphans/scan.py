# SPDX-License-Identifier: Apache-2.0
"""Scans the directories of a table for orphan files."""

from __future__ import annotations

import json
import re
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, cast

from lakeformat.errors import LakeError
from lakeformat.files.changelog_packs import PACK_PREFIX
from lakeformat.paimon.deletion import FileClass
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.orphans.directories import Area, DirectoryListing, TableDirectories
from lakeformat.paimon.orphans.file_names import is_known, is_temporary, writer_of
from lakeformat.paimon.orphans.manifest_names import encoded
from lakeformat.paimon.orphans.name_set import numbers_of
from lakeformat.paimon.orphans.references import References
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import FileInfo, Storage
from lakeformat.tables.commit_observer import ObservedFiles

__all__ = ["Candidate", "OrphanScan", "scan_observed", "scan_table"]

_METADATA = ".metadata.json"
_DELETES = (".parquet", ".puffin")
_VERSION = re.compile(r"v\d+" + re.escape(_METADATA), re.ASCII)
_IN_MEMORY_BYTES = 8 << 20
_AT_A_TIME = 1_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file older than the age limit that had no reference when its directory was listed."""

    storage: Storage
    path: str
    kind: FileClass
    size: int
    modified_millis: int

    @property
    def name(self) -> str:
        """The part of the path after the last slash."""
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class OrphanScan:
    """Counts the files of a table, and collects the candidates for removal.

    If there are many candidates, they are written to a temporary file.
    """

    references: References
    files: int = 0
    bytes: int = 0
    young_files: int = 0
    young_bytes: int = 0
    unknown_files: int = 0
    writing_files: int = 0
    """The number of candidates that are kept, because their writers may still be active."""
    writers_at_work: set[int] = field(default_factory=set)
    """``hash(writer)`` of each writer with a file newer than the age limit: it may still be active.
    """
    _storages: list[Storage] = field(default_factory=list)
    _lines: IO[str] = field(default_factory=lambda: _spooled())

    def add(self, storage: Storage, info: FileInfo, kind: FileClass) -> None:
        """Add a candidate."""
        if storage not in self._storages:
            self._storages.append(storage)
        place = self._storages.index(storage)
        line = [place, info.path, kind, info.size, info.modified_millis]
        self._lines.write(json.dumps(line) + "\n")

    def is_at_work(self, name: str) -> bool:
        """Return True if the writer of the file ``name`` also wrote a file newer than the age
        limit.
        """
        writer = writer_of(name)
        return writer is not None and hash(writer) in self.writers_at_work

    def candidates(self) -> Iterator[list[Candidate]]:
        """Yield batches of the candidates that still have no reference and whose writer is not
        active.
        """
        self._lines.seek(0)
        self.writing_files = 0
        lines = map(json.loads, self._lines)
        while window := list(islice(lines, _AT_A_TIME)):
            self.references.catch_up()
            found = [
                Candidate(self._storages[place], path, FileClass(kind), size, modified)
                for place, path, kind, size, modified in window
            ]
            needed = self.references.names.contains(
                numbers_of(encoded(each.name) for each in found)
            ).tolist()
            orphans = [each for each, is_needed in zip(found, needed, strict=True) if not is_needed]
            done = [each for each in orphans if not self.is_at_work(each.name)]
            self.writing_files += len(orphans) - len(done)
            yield done

    def close(self) -> None:
        """Delete the temporary file with the candidates."""
        self._lines.close()


def _spooled() -> IO[str]:
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+", encoding="ascii")  # noqa: SIM115
    return cast(IO[str], file)  # closed with the scan


def scan_table(
    scan: OrphanScan, handle: TableHandle, directories: TableDirectories, floor_millis: int
) -> None:
    """Add the unreferenced files that are older than ``floor_millis`` to ``scan``.

    Files with unknown names are only counted. If a file is committed after this call,
    ``OrphanScan.candidates`` leaves it out.
    """
    for listing in directories.listings(_files_in(scan.references)):
        if listing.area is Area.BRANCH:
            _look_at_branch(scan, listing, floor_millis)
        else:
            _look_at(scan, handle, listing, floor_millis)


def scan_observed(scan: OrphanScan, observed: ObservedFiles, floor_millis: int) -> None:
    """Add the unneeded Iceberg metadata files that are older than ``floor_millis`` to ``scan``."""
    storage, directory = observed.storage, observed.directory
    files = [info for info in storage.list(directory) if not info.is_directory]
    listing = DirectoryListing(Area.OBSERVED, storage, directory, files)
    scan.files += len(files)
    scan.bytes += sum(info.size for info in files)
    for info in files:
        if info.name not in observed.needed:
            _judge(scan, listing, info, _kind_of_published(info.name), floor_millis)
        elif info.modified_millis >= floor_millis:
            _remember(scan, info.name)


def _kind_of_published(name: str) -> FileClass:
    if is_temporary(name):
        return FileClass.OTHER
    if name.endswith(_METADATA):
        return FileClass.METADATA
    if name.endswith(_DELETES):
        return FileClass.DELETES
    return FileClass.MANIFEST_LIST if name.startswith("snap-") else FileClass.MANIFEST


def _files_in(references: References) -> dict[str, int]:
    """Return the number of manifest entries of each partition directory, by path.

    The result also has the parent directories. The number of a parent directory is the sum of the
    numbers of all partition directories below it.
    """
    found: Counter[str] = Counter()
    schema = references.handle.schema
    for partition, count in references.files_of.items():
        try:
            parts = partition_path(schema, partition).split("/")
        except LakeError:  # the counts only decide which directories are listed first
            continue
        for depth in range(1, len(parts) + 1):
            found["/".join(parts[:depth])] += count
    return found


def _look_at_branch(scan: OrphanScan, listing: DirectoryListing, floor_millis: int) -> None:
    for info in listing.files:
        if is_temporary(info.name):
            scan.files += 1
            scan.bytes += info.size
            _judge(scan, listing, info, FileClass.OTHER, floor_millis)


def _look_at(
    scan: OrphanScan, handle: TableHandle, listing: DirectoryListing, floor_millis: int
) -> None:
    files = listing.files
    scan.files += len(files)
    scan.bytes += sum(info.size for info in files)
    needed = scan.references.names.contains(numbers_of(encoded(info.name) for info in files))
    # some writers store files in the directory of the manifest that names them
    if listing.area is Area.SHARED:
        owners = numbers_of(encoded(info.name.partition(".")[0]) for info in files)
        needed |= scan.references.names.contains(owners)
    for info, is_needed in zip(files, needed.tolist(), strict=True):
        if not is_needed:
            _judge(scan, listing, info, _kind(handle, listing, info.name), floor_millis)
        elif info.modified_millis >= floor_millis:
            _remember(scan, info.name)


def _judge(
    scan: OrphanScan, listing: DirectoryListing, info: FileInfo, kind: FileClass, floor_millis: int
) -> None:
    """Count an unreferenced file that is too young, or whose age or name is unknown.

    Add any other unreferenced file to the candidates.
    """
    if info.modified_millis >= floor_millis:
        scan.young_files += 1
        scan.young_bytes += info.size
        _remember(scan, info.name)
    elif info.modified_millis <= 0 or not _is_ours(listing, info.name):
        scan.unknown_files += 1
    else:
        scan.add(listing.storage, info, kind)


def _is_ours(listing: DirectoryListing, name: str) -> bool:
    if listing.area is Area.OBSERVED and _VERSION.fullmatch(name):
        return True
    return is_temporary(name) or is_known(name)


def _remember(scan: OrphanScan, name: str) -> None:
    writer = writer_of(name)
    if writer is not None:
        scan.writers_at_work.add(hash(writer))


_PREFIXES = (
    ("manifest-list-", FileClass.MANIFEST_LIST),
    ("index-manifest-", FileClass.INDEX_MANIFEST),
    ("manifest-", FileClass.MANIFEST),
    ("stat-", FileClass.STATISTICS),
    ("index-", FileClass.INDEX),
)


def _kind(handle: TableHandle, listing: DirectoryListing, name: str) -> FileClass:
    if is_temporary(name):
        return FileClass.OTHER
    known = next((kind for prefix, kind in _PREFIXES if name.startswith(prefix)), None)
    if listing.area is Area.BUCKET and known is not FileClass.INDEX:
        is_changelog = name.startswith((handle.options.changelog_file_prefix, PACK_PREFIX))
        return FileClass.CHANGELOG if is_changelog else FileClass.DATA
    if known is not None:
        return known
    return FileClass.INDEX if listing.directory.endswith("/index") else FileClass.OTHER


def newest_number_at(times: Sequence[tuple[int, int]], millis: int) -> int | None:
    """Return the number of the snapshot that was the newest at ``millis``; None if all are later.

    ``times`` are pairs of commit time in epoch milliseconds and number, sorted.
    """
    at = bisect_right(times, millis, key=lambda each: each[0])
    return times[at - 1][1] if at else None
