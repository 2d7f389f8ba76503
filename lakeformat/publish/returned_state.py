# SPDX-License-Identifier: Apache-2.0
"""The published metadata of a Paimon table after a rollback."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.iceberg.metadata.snapshot import PAIMON_IDENTITY, SnapshotLogEntry
from lakeformat.iceberg.metadata.snapshot import Snapshot as IcebergSnapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["is_rolled_back", "published_snapshot", "returned_to"]


def published_snapshot(metadata: TableMetadata, head: Snapshot) -> IcebergSnapshot | None:
    """Return the Iceberg snapshot that publishes ``head``; None if the metadata lacks it."""
    found = metadata.snapshot(head.id)
    return (
        found if found is not None and found.summary.get(PAIMON_IDENTITY) == head.identity else None
    )


def is_rolled_back(metadata: TableMetadata) -> bool:
    """Return True if the metadata still has snapshots after its current snapshot."""
    current = metadata.current_snapshot_id
    return current is not None and any(each.snapshot_id > current for each in metadata.snapshots)


def returned_to(
    metadata: TableMetadata, head: IcebergSnapshot, newest_schema: int
) -> TableMetadata:
    """Return the metadata with ``head`` as the newest snapshot, without the later snapshots.

    After a rollback, new commits of the Paimon table use the numbers of the deleted snapshots and
    schemas again. So the later snapshots, and schemas above ``newest_schema``, are removed from the
    metadata. ``next-row-id`` is kept, because readers may have seen the row ids of deleted
    snapshots.
    """
    left = {each.snapshot_id for each in metadata.snapshots if each.snapshot_id > head.snapshot_id}
    references = {
        name: each for name, each in metadata.references.items() if each.snapshot_id not in left
    }
    main = replace(metadata.references[MAIN_BRANCH], snapshot_id=head.snapshot_id)
    log = tuple(each for each in metadata.snapshot_log if each.snapshot_id not in left)
    if not log or log[-1].snapshot_id != head.snapshot_id:
        log = (*log, SnapshotLogEntry(head.timestamp_ms, head.snapshot_id))
    assert head.schema_id is not None  # every published snapshot has one
    return replace(
        metadata,
        schemas=tuple(each for each in metadata.schemas if each.schema_id <= newest_schema),
        current_schema_id=head.schema_id,
        last_sequence_number=head.sequence_number,
        current_snapshot_id=head.snapshot_id,
        snapshots=tuple(each for each in metadata.snapshots if each.snapshot_id not in left),
        references={**references, MAIN_BRANCH: main},
        snapshot_log=log,
    )
