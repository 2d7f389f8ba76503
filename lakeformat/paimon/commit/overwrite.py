# SPDX-License-Identifier: Apache-2.0
"""The changes of an overwrite: all live files of the chosen partitions are replaced by new files.

Each attempt deletes the files that are live at its time, so an overwrite never conflicts because a
file is missing. ``read_snapshot_check.py`` protects rows that the commit has not read.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.base_files import BaseFiles
from lakeformat.paimon.commit.followed_files import files_named
from lakeformat.paimon.commit.key_ranges import first_overlap
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta, as_deletes
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask, NumberColumn
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition import partition_path
from lakeformat.paimon.partition_filter import PartitionFilter

__all__ = ["DYNAMIC", "Dynamic", "Overwrite", "Replacement", "require_within", "upgraded"]


class Dynamic:
    """Marks an overwrite that replaces exactly the partitions that get new files."""


DYNAMIC = Dynamic()
Replacement: TypeAlias = PartitionFilter | Dynamic | None
"""The partitions that an overwrite replaces; None for an append."""


@dataclass(slots=True)
class Overwrite:
    """Returns the changes that replace all live files of ``partitions`` by the files in ``new``."""

    handle: TableHandle
    partitions: PartitionFilter
    new: SnapshotDelta
    kept: Set[str] = frozenset()
    """The names of files that are not deleted."""
    _base: BaseFiles | None = None

    def __call__(self, head: Snapshot | None) -> SnapshotDelta:
        """Return the changes of the overwrite on top of ``head``, without changelog files.

        ``head=None`` stands for an empty table.
        """
        if head is None:
            return replace(self.new, changelog=SnapshotDelta().changelog)
        if self._base is None:
            may_hold = self.partitions.may_hold
            self._base = BaseFiles(
                self.handle, self._is_replaced, lambda meta: may_hold(meta.partition_stats)
            )
        gone = as_deletes(self._base.at(head))
        return SnapshotDelta(
            table=ManifestColumns.concat([gone, self.new.table]),
            index_removed=self._index_files(head),
            index_added=self.new.index_added,
        )

    def _is_replaced(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the files to delete.

        Files named in ``kept`` are not deleted. Files of ``bucket-postpone`` are deleted only if
        the table has ``'bucket' = '-2'``.
        """
        mask = self.partitions.mask(columns.partition.to_arrow())
        if int(self.handle.options.bucket) != POSTPONE_BUCKET:
            mask &= columns.bucket.numbers >= 0
        if self.kept:
            mask &= ~files_named(columns, self.kept)
        return mask

    def _index_files(self, head: Snapshot) -> tuple[IndexManifestEntry, ...]:
        if head.index_manifest is None:
            return ()
        storage, layout = self.handle.storage, self.handle.layout
        entries = read_index_manifest(storage, layout, head.index_manifest)
        rows = pa.array([entry.partition for entry in entries], pa.large_binary())
        mask = self.partitions.mask(rows)
        return tuple(entry for entry, gone in zip(entries, mask.tolist(), strict=True) if gone)


def require_within(handle: TableHandle, partitions: PartitionFilter, new: SnapshotDelta) -> None:
    """Raise InvalidRequestError for new files outside of the partitions that are replaced.

    Older rows would remain there, so the table could contain rows twice.
    """
    outside = new.table.filter(~partitions.mask(new.table.partition.to_arrow()))
    if len(outside):
        [entry] = outside.entries(np.arange(1))
        place = partition_path(handle.schema, entry.partition)
        raise InvalidRequestError(
            f"{entry.file.file_name} is in partition {place}, which this overwrite "
            "does not replace: add the partition to the overwrite, or append"
        )


def upgraded(handle: TableHandle, new: SnapshotDelta) -> SnapshotDelta:
    """Return the changes ``new`` with all new files on the highest level, or ``new`` unchanged.

    The files replace all rows, so there is nothing to merge them with. ``new`` is unchanged without
    ``overwrite-upgrade``, in a table without primary key, and if two files of a bucket have
    overlapping keys. It is also unchanged if a file is not on level 0, or has no bucket yet.
    """
    added = new.table
    options = handle.options
    if not handle.schema.primary_keys or not options.overwrite_upgrade or not len(added):
        return new
    if (added.level.numbers != 0).any() or (added.bucket.numbers < 0).any():
        return new
    partition = added.partition.to_arrow().dictionary_encode().indices.to_numpy()
    places = partition.astype(np.int64) * (int(added.bucket.numbers.max()) + 1)
    if first_overlap(added, places + added.bucket.numbers, handle.schema) is not None:
        return new
    top = np.full(len(added), options.level_count - 1, np.int64)
    return replace(new, table=replace(added, level=NumberColumn(top)))
