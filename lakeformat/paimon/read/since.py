# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshots after a position, and detects that a rollback has removed the position."""

from __future__ import annotations

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.existing_snapshots import read_snapshots
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.snapshot_positions import snapshot_number
from lakeformat.tables.position import OF_NO_SNAPSHOT, AnyPosition, Position
from lakeformat.tables.since import Since

__all__ = ["find_since"]


def find_since(
    handle: TableHandle, after: AnyPosition, upto: AnyPosition | None = None
) -> Since[Snapshot]:
    """Return the snapshots after ``after`` up to ``upto``; ``upto=None`` is the newest snapshot.

    The result also shows if snapshots right after ``after`` have expired, and if ``after`` is no
    longer in the history.
    """
    storage, layout = handle.storage, handle.layout
    start = snapshot_number(handle, "'after' must be a snapshot number", after)
    ids = snapshot_ids(storage, layout)
    end = max(ids, default=0)
    if upto is not None:
        end = min(end, snapshot_number(handle, "'upto' must be a snapshot number", upto))
    wanted = [number for number in ids if start < number <= end]
    threads = handle.options.file_operation_threads
    snapshots = tuple(read_snapshots(storage, layout, wanted, threads))
    return Since(
        snapshots,
        # Numbers have no gaps: a snapshot missing at the beginning has expired.
        missed=start < end and (not snapshots or snapshots[0].id > start + 1),
        rewound=start > max(ids, default=0) or _is_replaced(handle, after),
    )


def _is_replaced(handle: TableHandle, after: AnyPosition) -> bool:
    """Return True if another snapshot has the number of the position ``after``, because of a
    rollback.

    Return True also for the identity ``OF_NO_SNAPSHOT``, which no snapshot has. Return False for a
    position without an identity, and for any other position whose snapshot has expired.
    """
    if not isinstance(after, Position) or after.identity is None:
        return False
    found = read_snapshot_if_present(handle.storage, handle.layout, after.number)
    if found is None:
        return after.identity == OF_NO_SNAPSHOT
    return found.identity != after.identity
