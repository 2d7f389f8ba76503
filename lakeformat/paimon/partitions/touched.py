# SPDX-License-Identifier: Apache-2.0
"""Finds the partitions that a range of commits changed, from their delta manifests alone."""

from __future__ import annotations

from contextlib import suppress

from lakeformat.errors import SnapshotExpiredError
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.partition import partition_texts

__all__ = ["changed_partitions", "touched_partitions"]


def touched_partitions(handle: TableHandle, after: int, upto: int) -> list[dict[str, str | None]]:
    """Return the partitions in which snapshots ``after + 1`` to ``upto`` added or deleted files.

    Each partition maps its columns to values: str as in directory names, or None for null. Expired
    snapshots are skipped. The list is empty for a table without partition columns.
    """
    if not handle.schema.partition_keys:
        return []
    rows: set[bytes] = set()
    for number in range(after + 1, upto + 1):
        snapshot = read_snapshot_if_present(handle.storage, handle.layout, number)
        with suppress(SnapshotExpiredError), explaining_expiry(handle, snapshot):
            rows.update(changed_partitions(handle, snapshot) if snapshot is not None else ())
    keys = handle.schema.partition_keys
    texts = (partition_texts(handle.schema, row) for row in rows)
    return [
        dict(zip(keys, values, strict=True))
        for values in sorted(texts, key=lambda values: [value or "" for value in values])
    ]


def changed_partitions(handle: TableHandle, snapshot: Snapshot) -> list[bytes]:
    """Return the framed rows of the partitions in which a snapshot added or deleted files."""
    delta = manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA)
    found = read_manifests(handle.storage, handle.layout, delta)
    rows: list[bytes] = found.partition.to_arrow().unique().to_pylist()
    return rows
