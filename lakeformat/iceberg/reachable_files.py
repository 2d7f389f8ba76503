# SPDX-License-Identifier: Apache-2.0
"""Finds the files that snapshots refer to: manifests, live data and delete files, and
statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_each
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage.location import one_spelling
from lakeformat.tables.removal import FileClass

__all__ = ["ReachableFile", "live_files", "manifests_of", "statistics_sizes"]


@dataclass(frozen=True, slots=True)
class ReachableFile:
    """A file that metadata refers to: its URI, its kind, and its size in bytes if that is known."""

    address: str
    kind: FileClass
    size: int | None = None


def manifests_of(loaded: LoadedMetadata, snapshots: Iterable[Snapshot]) -> dict[str, pa.Table]:
    """Return the manifests of ``snapshots``, each as one row of a manifest list.

    The key is the normalised URI of the manifest.
    """
    found: dict[str, pa.Table] = {}
    for snapshot in snapshots:
        listed = read_manifest_list(loaded.places, snapshot)
        for place, address in enumerate(listed.column("manifest_path").to_pylist()):
            found.setdefault(one_spelling(address), listed.slice(place, 1))
    return found


def live_files(loaded: LoadedMetadata, manifests: Iterable[pa.Table]) -> dict[str, ReachableFile]:
    """Return the live files in manifests by their normalised URIs."""
    found: dict[str, ReachableFile] = {}
    for manifest in manifests:
        for _, entries in read_each(loaded.places, loaded.metadata, manifest, ()):
            live = live_entries(entries)
            columns = ("file_path", "content", "file_size_in_bytes")
            for address, content, size in zip(
                *(live.column(name).to_pylist() for name in columns), strict=True
            ):
                kind = FileClass.DATA if content == DATA else FileClass.DELETES
                found[one_spelling(address)] = ReachableFile(address, kind, size)
    return found


def statistics_sizes(metadata: TableMetadata) -> Mapping[str, int]:
    """Return the sizes of the statistics files in bytes, by their URIs."""
    of_table = {each.statistics_path: each.file_size_in_bytes for each in metadata.statistics}
    of_partitions = metadata.partition_statistics
    return of_table | {each.statistics_path: each.file_size_in_bytes for each in of_partitions}
