# SPDX-License-Identifier: Apache-2.0
"""Decides if a later snapshot was built on a given one.

While the predecessor of the given snapshot exists, no comparison is needed: the given snapshot is
in the history. If the predecessor has expired or was rolled back, the later snapshot may have been
built without the given one. Then this module compares the manifests and files of both snapshots.
"""

from __future__ import annotations

import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot

__all__ = ["is_built_on"]


def is_built_on(
    handle: TableHandle, later: int, snapshot: Snapshot, changes: SnapshotDelta
) -> bool | None:
    """Return True if snapshot ``later`` was built on ``snapshot``, False if not, None if unknown.

    The answer is True if ``later`` names a manifest or index manifest that ``snapshot`` wrote, or
    all data files that ``snapshot`` added. The answer is False if ``later`` has the next number and
    names none of these data files. Otherwise it is False if the file of snapshot ``later`` is older
    than that of ``snapshot``, else None.
    """
    answer = _decided_by_manifests(handle, later, snapshot, changes)
    if answer is None and _is_older(handle, later, snapshot.id):
        return False
    return answer


def _decided_by_manifests(
    handle: TableHandle, later: int, snapshot: Snapshot, changes: SnapshotDelta
) -> bool | None:
    storage, layout = handle.storage, handle.layout
    try:
        successor = read_snapshot(storage, layout, later)
        index = snapshot.index_manifest  # None if the snapshot removed the last index file
        if changes.has_index_changes and index is not None and index == successor.index_manifest:
            return True
        manifests = manifests_of(storage, layout, successor)
        if _names(manifests) & _own_manifests(handle, snapshot):
            return True
        there = read_manifests(storage, layout, manifests).file_name.to_arrow()
    except (CorruptTableError, NotFoundError):
        return None  # the later snapshot has expired, too
    added = changes.added.file_name.to_arrow()
    if not len(added):
        return None
    found = pc.is_in(added, there)
    if pc.all(found).as_py():
        return True
    return False if later == snapshot.id + 1 and not pc.any(found).as_py() else None


def _is_older(handle: TableHandle, one: int, other: int) -> bool:
    """Return True if the file of snapshot ``one`` is older than that of ``other``; False if
    unknown.
    """
    layout = handle.layout
    changed = {
        info.path: info.modified_millis for info in handle.storage.list(layout.snapshot_directory)
    }
    first, second = changed.get(layout.snapshot(one)), changed.get(layout.snapshot(other))
    return first is not None and second is not None and first < second


def _own_manifests(handle: TableHandle, snapshot: Snapshot) -> set[str]:
    """Return the names of the manifests of a snapshot's changes.

    The set is empty if their list is damaged or, for example after an expiry, missing.
    """
    try:
        return _names(manifests_of(handle.storage, handle.layout, snapshot, ListKind.DELTA))
    except (CorruptTableError, NotFoundError):
        return set()


def _names(manifests: list[ManifestMeta]) -> set[str]:
    return {manifest.file_name for manifest in manifests}
