# SPDX-License-Identifier: Apache-2.0
"""The changes of one snapshot: data, changelog and index files, in commit order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.metadata.manifest import FileKind, ManifestColumns, ManifestEntry
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_columns.columns import NumberColumn
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["Provider", "SnapshotDelta", "append_changes", "as_deletes", "compact_changes"]


@dataclass(frozen=True, slots=True)
class SnapshotDelta:
    """The changes of one snapshot: entries of data and changelog files, and index files."""

    table: ManifestColumns = field(default_factory=partial(columns_of, ()))
    changelog: ManifestColumns = field(default_factory=partial(columns_of, ()))
    index_removed: tuple[IndexManifestEntry, ...] = ()
    index_added: tuple[IndexManifestEntry, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (len(self.table) or len(self.changelog) or self.has_index_changes)

    @property
    def has_index_changes(self) -> bool:
        return bool(self.index_removed or self.index_added)

    @property
    def added(self) -> ManifestColumns:
        """The manifest entries of the added data files."""
        return self.table.filter(~self.table.is_delete)

    @property
    def added_rows(self) -> int:
        """The number of rows in added files, minus the number of rows in deleted files."""
        rows = self.table.row_count.numbers
        return int(np.where(self.table.is_delete, -rows, rows).sum())

    @property
    def changes_rows(self) -> bool:
        """True if data files are deleted or get deletion vectors; then the commit is not an
        append.
        """
        return bool(self.table.is_delete.any()) or any(
            entry.index_type == DELETION_VECTORS for entry in self.index_added
        )

    def partitions(self) -> pa.Array:
        """Return every changed partition once, as manifests store it: a framed binary row."""
        of_index = [entry.partition for entry in (*self.index_removed, *self.index_added)]
        found = [self.table.partition.to_arrow(), pa.array(of_index, pa.large_binary())]
        return pa.concat_arrays(found).unique()


Provider: TypeAlias = Callable[[Snapshot | None], SnapshotDelta]
"""Returns the changes of a commit, given the snapshot it builds on (None for an empty table)."""


def append_changes(handle: TableHandle, messages: Sequence[CommitMessage]) -> SnapshotDelta:
    """Return the changes of all messages, without the changes of their compactions."""
    table: list[ManifestEntry] = []
    for message in messages:
        one = (message,)
        table += _entries(handle, one, FileKind.ADD, lambda each: each.new_files)
        table += _entries(handle, one, FileKind.DELETE, lambda each: each.deleted_files)
    return SnapshotDelta(
        table=columns_of(table),
        changelog=columns_of(
            [*_entries(handle, messages, FileKind.ADD, lambda each: each.changelog_files)]
        ),
        index_removed=tuple(entry for message in messages for entry in message.deleted_index_files),
        index_added=tuple(entry for message in messages for entry in message.new_index_files),
    )


def compact_changes(handle: TableHandle, messages: Sequence[CommitMessage]) -> SnapshotDelta:
    """Return the changes by the compactions of all messages.

    The entries of each message delete its old files before they add the new ones.
    """
    table: list[ManifestEntry] = []
    for message in messages:
        one = (message,)
        table += _entries(handle, one, FileKind.DELETE, lambda each: each.compact_before)
        table += _entries(handle, one, FileKind.ADD, lambda each: each.compact_after)
    return SnapshotDelta(
        table=columns_of(table),
        changelog=columns_of(
            [*_entries(handle, messages, FileKind.ADD, lambda each: each.compact_changelog_files)]
        ),
        index_removed=tuple(
            entry for message in messages for entry in message.compact_deleted_index_files
        ),
        index_added=tuple(
            entry for message in messages for entry in message.compact_new_index_files
        ),
    )


def as_deletes(files: ManifestColumns) -> ManifestColumns:
    """Return the same entries, each with the kind DELETE."""
    kinds = np.full(len(files), int(FileKind.DELETE), np.int64)
    return replace(files, kind=NumberColumn(kinds))


def _entries(
    handle: TableHandle,
    messages: Iterable[CommitMessage],
    kind: FileKind,
    files: Callable[[CommitMessage], tuple[DataFileMeta, ...]],
) -> Iterator[ManifestEntry]:
    for message in messages:
        total = message.total_buckets
        buckets = int(handle.options.bucket) if total is None else total
        for file in files(message):
            yield ManifestEntry(kind, message.partition, message.bucket, buckets, file)
