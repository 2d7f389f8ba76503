"""Which snapshot a refused commit stands against: the one that changed what it wants to change.

The newest one is named only if it did so. A commit that is not found is nobody's: an error that
names an innocent writer sends whoever reads it the wrong way.
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
"""A commit is searched as far back as its own base lies, but an error should not take minutes."""


def against_last_change(
    who: Committer, head: Snapshot | None, data_files: Collection[str | None]
) -> str:
    """Both sides, the other being the newest snapshot that speaks of one of these data files."""
    names = pa.array([*data_files], pa.string())

    def speaks_of_one(found: Snapshot, _: Snapshot | None) -> bool:
        told = delta_of(who.handle, found).file_name.to_arrow()
        return bool(pc.any(pc.is_in(told, names.cast(told.type))).as_py())

    return _against(who, head, speaks_of_one)


def against_index_files(who: Committer, head: Snapshot | None, index_files: Collection[str]) -> str:
    """Both sides, the other being the newest snapshot that brought in or took out one of them."""

    def changes_one(found: Snapshot, before: Snapshot | None) -> bool:
        if before is None and found.id > 1:  # what there was before has expired
            return False
        name = before.index_manifest if before else None
        if found.index_manifest == name:
            return False
        now, then = (_index_files(who.handle, each) for each in (found.index_manifest, name))
        return not (now ^ then).isdisjoint(index_files)

    return _against(who, head, changes_one)


def _against(
    who: Committer, head: Snapshot | None, is_rival: Callable[[Snapshot, Snapshot | None], bool]
) -> str:
    """``is_rival`` is asked with each snapshot and the one before it, None if there is none."""
    if head is None:
        return who.against(None)
    base = head.id if who.planned_on is None else who.planned_on
    searched = min(max(head.id - base, FEWEST_SEARCHED), MOST_SEARCHED)
    found, oldest = head, head.id
    for before in newest_first(who.handle, head, max(head.id - searched, 0) - 1):
        if before is head:
            continue
        if is_rival(found, before):
            return who.against(found)
        oldest = found.id
        if before is None:
            break
        found = before
    if oldest == 1:  # nobody has, and nobody is named
        return f"{who} against snapshot {head.id}, the newest,"
    return f"{who} against a snapshot older than {oldest},"


def _index_files(handle: TableHandle, name: str | None) -> set[str]:
    entries = read_index_manifest(handle.storage, handle.layout, name) if name else []
    return {entry.file_name for entry in entries}
