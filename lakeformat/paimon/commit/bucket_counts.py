# SPDX-License-Identifier: Apache-2.0
"""Checks the buckets of an append: the bucket count of each partition, and the buckets of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakeformat.errors import CommitConflictError
from lakeformat.paimon.commit.base_files import in_partitions
from lakeformat.paimon.commit.conflict_text import Committer, place
from lakeformat.paimon.commit.conflicts import check_buckets
from lakeformat.paimon.commit.hash_conflicts import require_no_new_rows, require_same_index
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import crosses_partitions, has_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.simple_stats import may_contain_any
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_fields
from lakeformat.types.count_text import counted

__all__ = ["BucketCounts", "require_current_counts"]


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Compares the bucket counts of an append with those of the newest files in its partitions.

    It reads the newest manifests first and each only once. If the partitions were written lately,
    few manifests are enough.
    """

    who: Committer
    messages: Sequence[CommitMessage] = ()
    """The messages of the append, for the checks of ``hash_conflicts.py``."""
    _read: dict[str, dict[bytes, int]] = field(default_factory=dict)
    """The bucket count of each partition (a framed row) in each manifest that was read."""

    def check(self, head: Snapshot | None, changes: SnapshotDelta) -> None:
        """Raise CommitConflictError if new files have another bucket count than their partition.

        Raise its subclass BucketsChangedError if another commit may have moved keys to other
        buckets or partitions. ``head=None`` stands for an empty table.
        """
        if has_hash_index(self.who.handle):
            require_same_index(self.who, head, self.messages)
        if crosses_partitions(self.who.handle):
            require_no_new_rows(self.who, head, self.messages)
        check_buckets(self.who, head, changes.table)
        require_current_counts(self.who, head, changes)
        current, totals = _current(self.who), _totals(changes.table)
        wanted = {row: total for row, total in totals.items() if current <= 0 or total == current}
        if head is None:
            return
        for manifest in self._newest_first(head, wanted):
            counts = self._totals_in(manifest)
            for partition in [each for each in wanted if each in counts]:
                if wanted.pop(partition) != counts[partition]:
                    self._check_all(head, changes)
                    return

    def _newest_first(self, head: Snapshot, wanted: dict[bytes, int]) -> Iterator[ManifestMeta]:
        """Yield the manifests, newest first, that may name files of a partition in ``wanted``.

        The caller removes from ``wanted`` the partitions that it has checked.
        """
        types = [field.type for field in partition_fields(self.who.handle.schema)]
        for kind in (ListKind.DELTA, ListKind.BASE):
            if not wanted:
                return
            found = manifests_of(self.who.handle.storage, self.who.handle.layout, head, kind)
            for manifest in reversed(found):
                if may_contain_any(manifest.partition_stats, wanted, types):
                    yield manifest

    def _totals_in(self, manifest: ManifestMeta) -> dict[bytes, int]:
        name = manifest.file_name
        if name not in self._read:
            columns = read_manifests(self.who.handle.storage, self.who.handle.layout, [manifest])
            self._read[name] = _totals(columns)
        return self._read[name]

    def _check_all(self, head: Snapshot, changes: SnapshotDelta) -> None:
        """Raise CommitConflictError if the files of a changed partition have two bucket counts.

        The entries of all live files of these partitions are compared with the new ones.
        """
        live = in_partitions(self.who.handle, changes.partitions()).at(head)
        check_buckets(self.who, head, ManifestColumns.concat([live, changes.table]))


def require_current_counts(who: Committer, head: Snapshot | None, changes: SnapshotDelta) -> None:
    """Raise CommitConflictError if new files have the wrong bucket count for their partition.

    A partition keeps its count while it has files; an empty partition gets the count of the table.
    ``head=None`` stands for an empty table.
    """
    current = _current(who)
    odd = {row: total for row, total in _totals(changes.table).items() if total != current}
    if current <= 0 or not odd:
        return
    live = columns_of([])
    if head is not None:
        live = in_partitions(who.handle, pa.array([*odd], pa.large_binary())).at(head)
        check_buckets(who, head, ManifestColumns.concat([live, changes.table]))
    kept = _totals(live)
    for partition, total in odd.items():
        if partition not in kept:
            raise CommitConflictError(
                f"{who} conflicts: its files were written for {counted(total, 'bucket')}, but "
                f"{place(who.handle, partition)} is empty now and new files need {current} "
                f"('bucket' of schema {who.handle.schema.id}). So the bucket count changed "
                "while this commit was prepared. Nothing was published. Discard prepared messages "
                "with Table.abort, open the table again, and write the rows again"
            )


def _current(who: Committer) -> int:
    return int(who.handle.options.bucket)


def _totals(columns: ManifestColumns) -> dict[bytes, int]:
    """Return the bucket count of each partition (a framed row), from its last added file."""
    known = columns.filter(~columns.is_delete & (columns.total_buckets.numbers > 0))
    if not len(known):
        return {}
    codes = known.partition.to_arrow().dictionary_encode().indices.to_numpy()
    _, from_end = np.unique(codes[::-1], return_index=True)
    last = known.take(len(known) - 1 - from_end)
    pairs = zip(last.partition.values(), last.total_buckets.numbers.tolist(), strict=True)
    return {partition: total for partition, total in pairs if partition is not None}
