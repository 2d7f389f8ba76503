# SPDX-License-Identifier: Apache-2.0
"""Counts the files, rows and bytes that one snapshot added and deleted per partition.

Only the manifests of its commit are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.schema_file import require_schema_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.partition import partition_name

__all__ = ["PartitionChange", "SnapshotChange", "snapshot_change"]

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """The counts of files, rows and bytes that one snapshot added and deleted in one partition, or
    in the whole table.
    """

    partition: str
    """The partition as in ``dt=a/h=1``; empty for the whole table and for unpartitioned tables."""
    added_files: int
    added_rows: int
    """The number of rows in added files, including rows that a compaction rewrote."""
    added_bytes: int
    deleted_files: int
    deleted_rows: int
    deleted_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChange:
    """One snapshot and its changes to the files of the table."""

    snapshot: Snapshot
    total: PartitionChange
    partitions: tuple[PartitionChange, ...]
    """Changed partitions, most bytes first; empty for an unpartitioned table."""
    changes_index: bool | None
    """True if the index manifest changed, for example by new deletion vectors.

    None if the previous snapshot has expired.
    """


def snapshot_change(handle: TableHandle, number: int) -> SnapshotChange | None:
    """Return the changes of one snapshot; None if it has expired or does not exist yet.

    Raise SnapshotExpiredError if the snapshot expires while it is read.
    """
    snapshot = read_snapshot_if_present(handle.storage, handle.layout, number)
    if snapshot is None:
        return None
    require_schema_of(handle.storage, handle.layout, snapshot, known=handle.schema.id)
    with explaining_expiry(handle, snapshot):
        delta = manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA)
        files = read_manifests(handle.storage, handle.layout, delta)
    [total] = _changes(files, np.zeros(len(files), np.int64), [""])
    return SnapshotChange(
        snapshot=snapshot,
        total=total,
        partitions=_by_partition(handle, files),
        changes_index=_changes_index(handle, snapshot),
    )


def _by_partition(handle: TableHandle, files: ManifestColumns) -> tuple[PartitionChange, ...]:
    if not handle.schema.partition_keys:
        return ()
    encoded = files.partition.to_arrow().dictionary_encode()
    names = [partition_name(handle.schema, row) for row in encoded.dictionary.to_pylist()]
    groups = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found = _changes(files, groups, names)
    found.sort(key=lambda each: (-each.added_bytes - each.deleted_bytes, each.partition))
    return tuple(found)


def _changes(files: ManifestColumns, groups: Numbers, names: list[str]) -> list[PartitionChange]:
    members: dict[str, Numbers] = {}
    for word, mask in (("added", ~files.is_delete), ("deleted", files.is_delete)):
        members[f"{word}_files"] = _sums(np.ones(len(files), np.int64), groups, mask, len(names))
        members[f"{word}_rows"] = _sums(files.row_count.numbers, groups, mask, len(names))
        members[f"{word}_bytes"] = _sums(files.file_size.numbers, groups, mask, len(names))
    return [
        PartitionChange(partition=name, **_at(members, group)) for group, name in enumerate(names)
    ]


def _at(members: dict[str, Numbers], group: int) -> dict[str, Any]:
    return {member: int(numbers[group]) for member, numbers in members.items()}


def _sums(numbers: Numbers, groups: Numbers, mask: Mask, count: int) -> Numbers:
    total = np.zeros(count, np.int64)
    np.add.at(total, groups[mask], numbers[mask])
    return total


def _changes_index(handle: TableHandle, snapshot: Snapshot) -> bool | None:
    before = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id - 1)
    if before is None:
        return snapshot.index_manifest is not None if snapshot.id == 1 else None
    return before.index_manifest != snapshot.index_manifest
