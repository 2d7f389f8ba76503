# SPDX-License-Identifier: Apache-2.0
"""Finds the files that now hold the rows of a commit, after compactions have rewritten them."""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot

__all__ = ["FollowedFiles", "file_names", "files_named"]


class FollowedFiles:
    """The names of the files with the rows of one commit, in a table without primary key.

    A compaction may replace some of these files. If it replaces no other files of their partitions
    and drops no rows, its new files take their place in ``names``. ``through`` stops at any other
    rewrite.
    """

    def __init__(self, handle: TableHandle, names: Set[str]) -> None:
        self.names = names
        self._handle = handle
        self._ever = names

    def through(self, later: Sequence[Snapshot]) -> Snapshot | None:
        """Update ``names`` for the snapshots ``later``, given newest first.

        Stop at a snapshot that replaced some of the files by files with other rows, and return it;
        else return None. Files that are deleted without a replacement leave ``names``.
        """
        for snapshot in reversed(later):
            delta = delta_of(self._handle, snapshot)
            deleted, added = delta.filter(delta.is_delete), delta.filter(~delta.is_delete)
            gone = deleted.filter(files_named(deleted, self.names))
            partitions = gone.partition.to_arrow().unique()
            replaced, written = _in(deleted, partitions), _in(added, partitions)
            if len(written):
                if snapshot.commit_kind is not CommitKind.COMPACT or len(replaced) != len(gone):
                    return snapshot
                if _rows(written) != _rows(gone):
                    return snapshot  # the compaction dropped deleted rows
                self._ever = self._ever | file_names(written)
            restored = file_names(added) & self._ever  # removed by a rollback, or just compacted
            self.names = (self.names - file_names(gone)) | restored
        return None


def file_names(files: ManifestColumns) -> Set[str]:
    """Return the file names of manifest entries."""
    return {name for name in files.file_name.texts() if name is not None}


def files_named(files: ManifestColumns, names: Set[str]) -> Mask:
    """Return a mask of the entries of ``files`` whose name is one of ``names``."""
    own = files.file_name.to_arrow()
    found: Mask = pc.is_in(own, pa.array(sorted(names)).cast(own.type)).to_numpy(False)
    return found


def _in(files: ManifestColumns, partitions: pa.Array) -> ManifestColumns:
    return files.filter(pc.is_in(files.partition.to_arrow(), partitions).to_numpy(False))


def _rows(files: ManifestColumns) -> int:
    return int(files.row_count.numbers.sum())
