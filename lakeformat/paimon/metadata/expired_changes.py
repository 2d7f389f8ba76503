# SPDX-License-Identifier: Apache-2.0
"""Finds snapshots that name a changelog list which has expired.

A tag keeps rows but no changelog: the changelog of its snapshot is deleted when that snapshot
expires. A branch that was created from a tag, or a table after a rollback to a tag, may begin with
a snapshot that names a missing changelog list. Any other missing list is damage.
"""

from __future__ import annotations

from dataclasses import replace

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import Storage

__all__ = ["has_expired_changes", "without_expired_changes"]


def has_expired_changes(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> bool:
    """Return True if the snapshot names a changelog list that does not exist.

    Call this function only for the snapshot of a tag, and for the oldest snapshot of a table or
    branch. For any other snapshot, a missing list is damage.
    """
    name = snapshot.changelog_manifest_list
    return name is not None and not storage.exists(layout.manifest(name))


def without_expired_changes(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot, without the name of its changelog list if that list does not exist."""
    if not has_expired_changes(storage, layout, snapshot):
        return snapshot
    return replace(snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None)
