"""Changes that have expired although a snapshot that is there names them.

A tag keeps rows and no changes: what its snapshot has told of goes when that expires. Whoever
begins anew at such a tag - a branch, a rollback - has a first snapshot that names a changelog list
which is not there, byte for byte as other engines write it. Nowhere else may a list be missing.
"""

from __future__ import annotations

from dataclasses import replace

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import Storage

__all__ = ["has_expired_changes", "without_expired_changes"]


def has_expired_changes(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> bool:
    """Whether the changelog list it names is gone; for the first of a branch, and for tags."""
    name = snapshot.changelog_manifest_list
    return name is not None and not storage.exists(layout.manifest(name))


def without_expired_changes(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> Snapshot:
    """A snapshot that names its changelog list only if that is there."""
    if not has_expired_changes(storage, layout, snapshot):
        return snapshot
    return replace(snapshot, changelog_manifest_list=None, changelog_manifest_list_size=None)
