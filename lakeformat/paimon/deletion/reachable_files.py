# SPDX-License-Identifier: Apache-2.0
"""Finds the files to which a snapshot, a tag or a changelog refers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.deletion.candidates import Candidates
from lakeformat.paimon.deletion.places import FilePlaces
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.tables.removal import FileClass, Removal

__all__ = [
    "MetadataFiles",
    "add_candidates",
    "manifest_batches",
    "metadata_of",
    "metadata_removals",
    "none_if_missing",
]

T = TypeVar("T")
ALL_LISTS = tuple(ListKind)


@dataclass(slots=True)
class MetadataFiles:
    """Metadata and index files by name, with their sizes in bytes if known."""

    lists: dict[str, int | None] = field(default_factory=dict)
    manifests: dict[str, int | None] = field(default_factory=dict)
    index_manifests: set[str] = field(default_factory=set)
    index_files: dict[str, IndexManifestEntry] = field(default_factory=dict)
    """The entries of index files by key (see ``FilePlaces.index_key``)."""
    statistics: set[str] = field(default_factory=set)

    def update(self, other: MetadataFiles) -> None:
        """Add all files of another ``MetadataFiles``."""
        self.lists |= other.lists
        self.manifests |= other.manifests
        self.index_manifests |= other.index_manifests
        self.index_files |= other.index_files
        self.statistics |= other.statistics


def metadata_of(
    handle: TableHandle,
    snapshot: Snapshot,
    lists: Sequence[ListKind] = ALL_LISTS,
    *,
    with_index: bool = True,
    on_missing: Callable[[str], object] | None = None,
) -> MetadataFiles:
    """Return the manifest lists, manifests, index files and statistics of a snapshot.

    Index files and statistics are left out without ``with_index``. A missing file raises
    CorruptTableError. If ``on_missing`` is given, it is called with the path instead: after an
    interrupted expiry the remaining files may name deleted ones.
    """
    storage, layout, found = handle.storage, handle.layout, MetadataFiles()
    for kind in lists:
        name, size = (getattr(snapshot, member) for member in kind.value)
        if name is None:
            continue
        found.lists[name] = size
        manifests = none_if_missing(
            handle,
            layout.manifest(name),
            partial(manifests_of, storage, layout, snapshot, kind),
            on_missing,
        )
        found.manifests |= {each.file_name: each.file_size for each in manifests or ()}
    if not with_index:
        return found
    if snapshot.index_manifest is not None:
        name = snapshot.index_manifest
        found.index_manifests.add(name)
        entries = none_if_missing(
            handle,
            layout.manifest(name),
            partial(read_index_manifest, storage, layout, name),
            on_missing,
        )
        places = FilePlaces(handle)
        found.index_files |= {places.index_key(entry): entry for entry in entries or ()}
    if snapshot.statistics is not None:
        found.statistics.add(snapshot.statistics)
    return found


def metadata_removals(
    handle: TableHandle, files: MetadataFiles, kept: MetadataFiles, reason: str
) -> Iterator[Removal]:
    """Yield the removals of ``files`` that are not in ``kept``.

    Index files come first, and manifest lists last. So after an interruption, the files that name
    the remaining files still exist.
    """
    storage, layout, places = handle.storage, handle.layout, FilePlaces(handle)
    for key, entry in files.index_files.items():
        if key not in kept.index_files:
            yield places.index_file(entry, reason)
    for name, size in files.manifests.items():
        if name not in kept.manifests:
            yield Removal(storage, layout.manifest(name), FileClass.MANIFEST, reason, size)
    for name in sorted(files.index_manifests - kept.index_manifests):
        yield Removal(storage, layout.manifest(name), FileClass.INDEX_MANIFEST, reason)
    for name in sorted(files.statistics - kept.statistics):
        yield Removal(storage, layout.statistics(name), FileClass.STATISTICS, reason)
    for name, size in files.lists.items():
        if name not in kept.lists:
            yield Removal(storage, layout.manifest(name), FileClass.MANIFEST_LIST, reason, size)


def add_candidates(
    candidates: Candidates, batches: Iterable[ManifestColumns], kind: FileClass, reason: str
) -> None:
    """Add to ``candidates`` the files that the entries in ``batches`` add to the table."""
    for columns in batches:
        candidates.add(columns.filter(~columns.is_delete), kind, reason)


def manifest_batches(
    handle: TableHandle,
    manifests: Sequence[ManifestMeta],
    on_missing: Callable[[str], object] | None = None,
) -> Iterator[ManifestColumns]:
    """Yield the entries of manifests, one manifest at a time to limit memory.

    A missing manifest raises CorruptTableError. If ``on_missing`` is given, it is called with the
    path instead.
    """
    storage, layout = handle.storage, handle.layout
    for each in manifests:
        columns = none_if_missing(
            handle,
            layout.manifest(each.file_name),
            partial(read_manifests, storage, layout, [each]),
            on_missing,
        )
        if columns is not None and len(columns):
            yield columns


def none_if_missing(
    handle: TableHandle,
    path: str,
    read: Callable[[], T],
    on_missing: Callable[[str], object] | None,
) -> T | None:
    """Return the result of ``read``, which reads the file ``path``.

    If the file is missing, call ``on_missing`` with the path and return None. Without
    ``on_missing``, and for a damaged file, raise the CorruptTableError of ``read``.
    """
    try:
        return read()
    except CorruptTableError:
        if on_missing is None or handle.storage.exists(path):
            raise
        on_missing(path)
        return None


def deleted_rows(columns: ManifestColumns) -> ManifestColumns:
    """Return the entries that delete a file, without the entries that add one."""
    return columns.take(np.flatnonzero(columns.is_delete))
