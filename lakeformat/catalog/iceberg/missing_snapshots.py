# SPDX-License-Identifier: Apache-2.0
"""Finds out if snapshots that were published since an older state of a table have expired."""

from __future__ import annotations

from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["misses_snapshots"]


def misses_snapshots(now: TableMetadata, before: TableMetadata) -> bool:
    """Return True if ``now`` lacks a snapshot that was published since the state ``before``.

    Each commit of a snapshot raises the last sequence number by one. If that number rose by more
    than the number of new snapshots in ``now``, a snapshot is missing. Format version 1 has no
    sequence numbers: there, a snapshot counts as missing only if a new snapshot names it as its
    parent.
    """
    known = {each.snapshot_id for each in before.snapshots}
    added = [each for each in now.snapshots if each.snapshot_id not in known]
    known |= {each.snapshot_id for each in added}
    if any(each.parent_id is not None and each.parent_id not in known for each in added):
        return True
    return now.last_sequence_number - before.last_sequence_number > len(added)
