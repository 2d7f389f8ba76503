# SPDX-License-Identifier: Apache-2.0
"""Deletes empty bucket and partition directories."""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.errors import LakeError
from lakeformat.paimon.handle import TableHandle
from lakeformat.storage.empty_directory import remove_empty_directory
from lakeformat.tables.removal import FileClass, Removal

__all__ = ["bucket_directories", "remove_empty_directories"]


def bucket_directories(handle: TableHandle, removals: Iterable[Removal]) -> set[str]:
    """Return the bucket directories below the table from which ``removals`` delete files."""
    return {
        removal.path.rpartition("/")[0]
        for removal in removals
        if removal.storage is handle.storage
        and removal.kind in (FileClass.DATA, FileClass.CHANGELOG)
    }


def remove_empty_directories(handle: TableHandle, buckets: Iterable[str]) -> int:
    """Remove empty bucket directories, then empty partition directories, deepest first.

    Return the number of removed directories. A directory that cannot be removed is skipped.
    """
    layout = handle.layout
    top = "/".join(part for part in (layout.root, layout.data_path) if part)
    below = f"{top}/" if top else ""
    waiting = {bucket for bucket in buckets if bucket.startswith(below)}
    removed = 0
    while waiting:
        deepest = max(path.count("/") for path in waiting)
        level = sorted(path for path in waiting if path.count("/") == deepest)
        waiting.difference_update(level)
        for path in level:
            if not _is_removed(handle, path):
                continue
            removed += 1
            parent = path.rpartition("/")[0]
            if parent not in (top, ""):
                waiting.add(parent)
    return removed


def _is_removed(handle: TableHandle, path: str) -> bool:
    try:
        return handle.storage.directory_exists(path) and remove_empty_directory(
            handle.storage, path
        )
    except LakeError:
        return False
