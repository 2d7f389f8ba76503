# SPDX-License-Identifier: Apache-2.0
"""Decides into how many nodes an optimizing divides the base files of a partition.

The number of nodes is doubled or halved at most once for each run. No file is rewritten only
because the number has changed: files written with the old and the new number are read together.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.mixed.optimizing.evaluate import OptimizingType
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.store_files import StoreFile

__all__ = ["next_node_count", "node_count", "stored_node_count"]

_MOST = 256
_FILES = 8
"""The number of files of the target size that a node should have."""
_GROW, _SHRINK = 1.5, 0.25
"""The limits of the average size of a node, as multiples of the size that a node should have.

A node should have the size of ``_FILES`` files of the target size. If the average is more than
``_GROW`` times this size, the number of nodes is doubled. If it is less than ``_SHRINK`` times this
size, the number is halved.
"""


def node_count(
    files: Iterable[StoreFile], settings: OptimizingSettings, kind: OptimizingType
) -> int:
    """Return the number of nodes into which an optimizing divides the new base files.

    ``files`` are the files that the partition has now. Without ``lake.auto-buckets`` the table
    property ``base.file-index.hash-bucket`` sets the number. With ``lake.auto-buckets`` a minor
    optimizing keeps the number that the base files have now. A major or full optimizing adapts
    this number to the size of the partition.
    """
    stored = [*files]
    current = stored_node_count(stored, settings)
    if not settings.auto_buckets or kind is OptimizingType.MINOR:
        return current
    size = sum(each.split.file.size_bytes for each in stored)
    return next_node_count(current, size, settings.target_size)


def stored_node_count(files: Iterable[StoreFile], settings: OptimizingSettings) -> int:
    """Return the number of nodes that a partition with these files has now.

    With ``lake.auto-buckets`` its base files show the number. Otherwise, or without base files, the
    table property ``base.file-index.hash-bucket`` sets the number.
    """
    masks = [each.node.mask for each in files if settings.auto_buckets and not each.in_change]
    return min(max(masks) + 1, _MOST) if masks else settings.base_buckets


def next_node_count(current: int, size: int, target_size: int) -> int:
    """Return the number of nodes for a partition of ``size`` bytes with ``current`` nodes now."""
    of_node, wanted = size / current, _FILES * target_size
    if of_node > _GROW * wanted:
        return min(2 * current, _MOST)
    return max(current // 2, 1) if of_node < _SHRINK * wanted else current
