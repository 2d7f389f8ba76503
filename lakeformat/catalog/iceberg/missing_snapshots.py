# SPDX-License-Identifier: Apache-2.0
"""Finds out if snapshots that were published since an older state of a table have expired."""

from __future__ import annotations

from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["misses_snapshots"]


def misses_snapshots(now: TableMetadata, before: TableMetadata) -> bool:
    """Return True if ``now`` lacks a snapshot that was published since the state ``before``.

    Each snapshot takes one sequence number, except in format version 1. There, only a missing
    parent is noticed.
    """
    known = {each.snapshot_id for each in before.snapshots}
    added = [each for each in now.snapshots if each.snapshot_id not in known]
    known |= {each.snapshot_id for each in added}
    if any(each.parent_id is not None and each.parent_id not in known for each in added):
        return True
    return now.last_sequence_number - before.last_sequence_number > len(added)
