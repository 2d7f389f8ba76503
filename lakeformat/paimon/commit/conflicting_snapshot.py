# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot that a conflict error names: the newest snapshot that changed the same files.

If all snapshots were searched and none changed the files, the error names the newest snapshot. The
search may end earlier, at an expired snapshot or at its limit. Then the conflicting snapshot is
older than all searched ones, and the error names the oldest of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.commit.conflict_text import Committer
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["against_index_files", "against_last_change"]

FEWEST_SEARCHED = 100
MOST_SEARCHED = 1000
"""At least ``FEWEST_SEARCHED`` and at most this many of the newest snapshots are searched.

Between these limits, the search ends at the snapshot that the commit was planned on.
"""


def against_last_change(
    who: Committer, head: Snapshot | None, data_files: Collection[str | None]
) -> str:
    """Return "<who> conflicts with <snapshot>"; ``head=None`` stands for an empty table.

    The text names the newest snapshot that added or deleted one of the data files.
    """
    names = pa.array([*data_files], pa.string())

    def has_entry(found: Snapshot, _: Snapshot | None) -> bool:
        changed = delta_of(who.handle, found).file_name.to_arrow()
        return bool(pc.any(pc.is_in(changed, names.cast(changed.type))).as_py())

    return _against(who, head, has_entry)


def against_index_files(who: Committer, head: Snapshot | None, index_files: Collection[str]) -> str:
    """Return "<who> conflicts with <snapshot>"; ``head=None`` stands for an empty table.

    The text names the newest snapshot that added or removed one of the index files.
    """

    def changes_one(found: Snapshot, before: Snapshot | None) -> bool:
        if before is None and found.id > 1:  # its predecessor has expired, so its change is unknown
            return False
        name = before.index_manifest if before else None
        if found.index_manifest == name:
            return False
        now, then = (_index_files(who.handle, each) for each in (found.index_manifest, name))
        return not (now ^ then).isdisjoint(index_files)

    return _against(who, head, changes_one)


def _against(
    who: Committer, head: Snapshot | None, conflicts: Callable[[Snapshot, Snapshot | None], bool]
) -> str:
    """Return "<who> conflicts with <snapshot>" for the newest snapshot that ``conflicts`` accepts.

    Only some recent snapshots are searched: see the module's docstring. ``conflicts`` gets each
    snapshot and the snapshot before it, or None if that does not exist.
    """
    if head is None:
        return who.against(None)
    base = head.id if who.planned_on is None else who.planned_on
    searched = min(max(head.id - base, FEWEST_SEARCHED), MOST_SEARCHED)
    found, oldest = head, head.id
    for before in newest_first(who.handle, head, max(head.id - searched, 0) - 1):
        if before is head:
            continue
        if conflicts(found, before):
            return who.against(found)
        oldest = found.id
        if before is None:
            break
        found = before
    if oldest == 1:  # All snapshots were searched, and none changed the files.
        return f"{who} conflicts with snapshot {head.id}, the newest"
    return f"{who} conflicts with a snapshot older than {oldest}"


def _index_files(handle: TableHandle, name: str | None) -> set[str]:
    entries = read_index_manifest(handle.storage, handle.layout, name) if name else []
    return {entry.file_name for entry in entries}
