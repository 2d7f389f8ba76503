# SPDX-License-Identifier: Apache-2.0
"""Describes how far the Iceberg metadata is behind its table, for health reports."""

from __future__ import annotations

from lakeformat.errors import LakeError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.publish.next_state import IDENTITY
from lakeformat.publish.place import versions_of
from lakeformat.tables.commit_observer import ObserverLag
from lakeformat.types.count_text import counted

__all__ = ["publication_lag"]


def publication_lag(handle: TableHandle) -> ObserverLag:
    """Return how many snapshots Iceberg readers do not see yet.

    Metadata that is missing, unreadable, of another address, or of a snapshot that was rolled back
    shows none of them.
    """
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        return ObserverLag(0)
    finding, shown = _finding(handle, head)
    return ObserverLag(0 if finding is None else head.id - shown, finding)


def _finding(handle: TableHandle, head: Snapshot) -> tuple[str | None, int]:
    """Return the lag in words, and the newest snapshot that readers see; 0 if they see none."""
    try:
        versions = versions_of(handle)
        newest = versions.newest()
    except LakeError as reason:
        return f"the Iceberg metadata of the table cannot be read: {reason}", 0
    shown = None if newest is None else newest.metadata.current_snapshot
    if newest is None or shown is None:
        return "the table has no Iceberg metadata yet, so readers of Iceberg do not find it", 0
    if newest.metadata.location.rstrip("/") != versions.location:
        return (
            f"the Iceberg metadata names the files at the earlier address of the table, "
            f"{newest.metadata.location}, where readers do not find them"
        ), 0
    if shown.snapshot_id == head.id and shown.summary.get(IDENTITY) == head.identity:
        return None, head.id
    if shown.snapshot_id < head.id:
        missing = counted(head.id - shown.snapshot_id, "snapshot")
        return (
            f"the Iceberg metadata is {missing} behind: it shows snapshot {shown.snapshot_id}, and "
            f"the newest is {head.id}"
        ), shown.snapshot_id
    return (
        f"the Iceberg metadata shows snapshot {shown.snapshot_id}, which the table left by a "
        f"rollback: the newest is {head.id}"
    ), 0
