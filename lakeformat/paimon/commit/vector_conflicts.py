# SPDX-License-Identifier: Apache-2.0
"""Checks that deletion vectors survive a commit, so that no deleted row reappears."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    IndexManifestEntry,
    read_index_manifest,
)
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["VectorConflict", "find_vector_conflict"]


@dataclass(frozen=True, slots=True)
class VectorConflict:
    """A conflict of deletion vectors; ``why`` continues a sentence that begins with "this
    commit".
    """

    why: str
    files: tuple[str, ...]
    """The names of the files that another commit changed."""
    is_about_index: bool = True
    """True if ``files`` are index files, False if they are data files."""


def find_vector_conflict(
    handle: TableHandle, head: Snapshot | None, changes: SnapshotDelta, left: ManifestColumns
) -> VectorConflict | None:
    """Return a conflict between the commit and the table's deletion vectors, or None.

    ``left`` are the entries of the live files that the changed partitions have after the commit.
    """
    added, removed = _vectors(changes.index_added), _vectors(changes.index_removed)
    if not (added or removed or changes.table.is_delete.any()):
        return None
    name = head.index_manifest if head else None
    state = _vectors(read_index_manifest(handle.storage, handle.layout, name) if name else [])
    return _Marks(handle, state, added, removed).conflict(changes, left)


def _vectors(entries: Iterable[IndexManifestEntry]) -> list[IndexManifestEntry]:
    return [entry for entry in entries if entry.index_type == DELETION_VECTORS]


@dataclass(frozen=True, slots=True)
class _Marks:
    handle: TableHandle
    state: list[IndexManifestEntry]
    added: list[IndexManifestEntry]
    removed: list[IndexManifestEntry]

    def conflict(self, changes: SnapshotDelta, left: ManifestColumns) -> VectorConflict | None:
        there = {entry.file_name for entry in self.state}
        gone = sorted(entry.file_name for entry in self.removed if entry.file_name not in there)
        if gone:
            why = f"replaces the deletion vectors {', '.join(gone)}, which do not exist any more"
            return VectorConflict(why, tuple(gone))
        marked = {each.data_file_name for entry in self.added for each in entry.ranges or ()}
        missing = sorted(marked - set(left.file_name.texts())) if marked else []
        if missing:
            why = f"deletes rows of files that are not in the table any more: {', '.join(missing)}"
            return VectorConflict(why, tuple(missing), is_about_index=False)
        return self._unread_vectors() or self._unread_marks(changes)

    def _unread_vectors(self) -> VectorConflict | None:
        """Return a conflict if the commit replaces a bucket's deletion vectors without having read
        them.

        Otherwise return None, also for a table without buckets. A bucket has one index file of
        deletion vectors, so a commit that adds such a file must remove the live one.
        """
        if is_unaware(self.handle):
            return None
        known = {entry.file_name for entry in self.removed}
        buckets = {(entry.partition, entry.bucket) for entry in self.added}
        for entry in self.state:
            if (entry.partition, entry.bucket) in buckets and entry.file_name not in known:
                why = f"replaces the deletion vectors {entry.file_name} without having read them"
                return VectorConflict(why, (entry.file_name,))
        return None

    def _unread_marks(self, changes: SnapshotDelta) -> VectorConflict | None:
        """Return a conflict if the commit deletes a data file without having read its deletion
        vector.

        Otherwise return None, also for a table with a primary key. It is no conflict if the commit
        deletes a file and adds it again, for example with another file index.
        """
        if self.handle.schema.primary_keys:
            return None
        known = {entry.file_name for entry in self.removed}
        table = changes.table
        places = _places(table.filter(table.is_delete)) - _places(table.filter(~table.is_delete))
        for entry in self.state if places else ():
            for each in entry.ranges or ():
                place = (entry.partition, entry.bucket, each.data_file_name)
                if place in places and entry.file_name not in known:
                    why = (
                        f"deletes {each.data_file_name} without having read its deletion "
                        f"vectors {entry.file_name}: deleted rows would reappear"
                    )
                    return VectorConflict(why, (entry.file_name,))
        return None


def _places(files: ManifestColumns) -> set[tuple[bytes | None, int, str | None]]:
    rows = zip(
        files.partition.values(),
        files.bucket.numbers.tolist(),
        files.file_name.texts(),
        strict=True,
    )
    return set(rows)
