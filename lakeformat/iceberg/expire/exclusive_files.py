# SPDX-License-Identifier: Apache-2.0
"""Finds the files that only expired snapshots needed, by everything that the kept ones reach.

All manifests of kept snapshots are read unless no data file is a candidate: a shortcut by the
snapshots' own additions would delete live files where a snapshot is outside of the main history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_each
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage.location import one_spelling
from lakeformat.tables.removal import FileClass, Removal

__all__ = ["ExclusiveFiles", "find_exclusive_files"]

_REASON = "only expired snapshots needed it"


@dataclass(slots=True)
class ExclusiveFiles:
    """The files to delete, in steps: a file comes before those that name it."""

    steps: list[list[Removal]] = field(default_factory=list)
    outside: int = 0
    """Files outside of the table and of the directories that the caller allows; they are kept."""


@dataclass(frozen=True, slots=True)
class _File:
    address: str
    kind: FileClass
    size: int | None = None


def find_exclusive_files(before: LoadedMetadata, after: TableMetadata) -> ExclusiveFiles:
    """Return the files of the snapshots that ``after`` lacks, without those that it still needs."""
    kept_ids = {each.snapshot_id for each in after.snapshots}
    expired = [each for each in before.metadata.snapshots if each.snapshot_id not in kept_ids]
    of_expired, of_kept = _manifests(before, expired), _manifests(before, after.snapshots)
    manifests = {key: of_expired[key] for key in of_expired.keys() - of_kept.keys()}
    data = _live_files(before, manifests.values())
    for key in _live_files(before, of_kept.values()) if data else ():
        data.pop(key, None)
    found = ExclusiveFiles()
    for step in (
        data.values(),
        [_manifest_file(each) for each in manifests.values()],
        _lists(expired, after.snapshots),
        _statistics(before.metadata, after),
    ):
        found.steps.append(list(_removals(before.places, step, found)))
    return found


def _manifests(loaded: LoadedMetadata, snapshots: Iterable[Snapshot]) -> dict[str, pa.Table]:
    """Return the manifests of snapshots, each as a table of one row, by their addresses."""
    found: dict[str, pa.Table] = {}
    for snapshot in snapshots:
        listed = read_manifest_list(loaded.places, snapshot)
        for place, address in enumerate(listed.column("manifest_path").to_pylist()):
            found.setdefault(one_spelling(address), listed.slice(place, 1))
    return found


def _live_files(loaded: LoadedMetadata, manifests: Iterable[pa.Table]) -> dict[str, _File]:
    """Return the live files of manifests by their addresses, in one spelling."""
    found: dict[str, _File] = {}
    for manifest in manifests:
        for _, entries in read_each(loaded.places, loaded.metadata, manifest, ()):
            live = live_entries(entries)
            columns = ("file_path", "content", "file_size_in_bytes")
            for address, content, size in zip(
                *(live.column(name).to_pylist() for name in columns), strict=True
            ):
                kind = FileClass.DATA if content == DATA else FileClass.DELETES
                found[one_spelling(address)] = _File(address, kind, size)
    return found


def _manifest_file(manifest: pa.Table) -> _File:
    [row] = manifest.select(["manifest_path", "manifest_length"]).to_pylist()
    return _File(row["manifest_path"], FileClass.MANIFEST, row["manifest_length"])


def _lists(expired: Iterable[Snapshot], kept: Iterable[Snapshot]) -> list[_File]:
    addresses = [each.manifest_list for each in expired if each.manifest_list is not None]
    needed = {one_spelling(each.manifest_list) for each in kept if each.manifest_list is not None}
    return [
        _File(address, FileClass.MANIFEST_LIST)
        for address in addresses
        if one_spelling(address) not in needed
    ]


def _statistics(before: TableMetadata, after: TableMetadata) -> list[_File]:
    needed = {one_spelling(address) for address in _statistics_sizes(after)}
    return [
        _File(address, FileClass.STATISTICS, size)
        for address, size in _statistics_sizes(before).items()
        if one_spelling(address) not in needed
    ]


def _statistics_sizes(metadata: TableMetadata) -> Mapping[str, int]:
    of_table = {each.statistics_path: each.file_size_in_bytes for each in metadata.statistics}
    of_partitions = metadata.partition_statistics
    return of_table | {each.statistics_path: each.file_size_in_bytes for each in of_partitions}


def _removals(
    places: FilePlaces, files: Iterable[_File], found: ExclusiveFiles
) -> Iterator[Removal]:
    """Yield the removals of files that may be deleted; count those outside."""
    for file in sorted(files, key=lambda each: each.address):
        try:
            storage, path = places.place(file.address)
        except InvalidRequestError:
            found.outside += 1
            continue
        yield Removal(storage, path, file.kind, _REASON, file.size)
