# SPDX-License-Identifier: Apache-2.0
"""Finds the files that only expired snapshots need.

If data or statistics files may be deleted, all manifests of kept snapshots are read, because kept
snapshots of any branch may still need these files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import HINT, is_metadata_file
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.reachable_files import (
    ReachableFile,
    live_files,
    manifests_of,
    statistics_sizes,
)
from lakeformat.storage.location import one_spelling
from lakeformat.tables.removal import FileClass, Removal

__all__ = ["ExclusiveFiles", "find_exclusive_files"]

_REASON = "only expired snapshots needed it"


@dataclass(slots=True)
class ExclusiveFiles:
    """The files to delete, in steps: each file is deleted before the files that name it."""

    steps: list[list[Removal]] = field(default_factory=list)
    outside: int = 0
    """The number of files that are kept, because they are outside of the table and of allowed
    directories."""


def find_exclusive_files(before: LoadedMetadata, after: TableMetadata) -> ExclusiveFiles:
    """Return the files that snapshots of ``before`` need, but no snapshot of ``after`` needs."""
    kept_ids = {each.snapshot_id for each in after.snapshots}
    expired = [each for each in before.metadata.snapshots if each.snapshot_id not in kept_ids]
    of_expired, of_kept = manifests_of(before, expired), manifests_of(before, after.snapshots)
    manifests = {key: of_expired[key] for key in of_expired.keys() - of_kept.keys()}
    data = live_files(before, manifests.values())
    statistics = _statistics(before.metadata, after)
    # Damaged metadata can name any file as data or statistics, even a manifest or a manifest list.
    needed = {one_spelling(each) for each in (*_lists(after.snapshots), *statistics_sizes(after))}
    needed |= of_kept.keys()
    if data or statistics:
        needed |= live_files(before, of_kept.values()).keys()
    found = ExclusiveFiles()
    for step in (
        data.values(),
        [_manifest_file(each) for each in manifests.values()],
        [ReachableFile(address, FileClass.MANIFEST_LIST) for address in _lists(expired)],
        statistics,
    ):
        unneeded = [each for each in step if one_spelling(each.address) not in needed]
        found.steps.append(list(_removals(before.places, unneeded, found)))
    return found


def _manifest_file(manifest: pa.Table) -> ReachableFile:
    [row] = manifest.select(["manifest_path", "manifest_length"]).to_pylist()
    return ReachableFile(row["manifest_path"], FileClass.MANIFEST, row["manifest_length"])


def _lists(snapshots: Iterable[Snapshot]) -> list[str]:
    return [each.manifest_list for each in snapshots if each.manifest_list is not None]


def _statistics(metadata: TableMetadata, after: TableMetadata) -> list[ReachableFile]:
    named = statistics_sizes(after)
    return [
        ReachableFile(address, FileClass.STATISTICS, size)
        for address, size in statistics_sizes(metadata).items()
        if address not in named
    ]


def _removals(
    places: FilePlaces, files: Iterable[ReachableFile], found: ExclusiveFiles
) -> Iterator[Removal]:
    """Yield the files that may be deleted, sorted by address.

    Files in directories that are not allowed are only counted, in ``found``.
    """
    for file in sorted(files, key=lambda each: each.address):
        try:
            storage, path = places.place(file.address)
        except InvalidRequestError:
            found.outside += 1
            continue
        name = path.rpartition("/")[2]
        if name == HINT or is_metadata_file(name):
            continue  # the table needs these files, even if a damaged manifest names one as data
        yield Removal(storage, path, file.kind, _REASON, file.size)
