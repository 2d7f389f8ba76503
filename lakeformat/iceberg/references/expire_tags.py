# SPDX-License-Identifier: Apache-2.0
"""Deletes tags whose retention is over."""

from __future__ import annotations

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import TAG, Reference
from lakeformat.iceberg.references.delete import delete_chosen
from lakeformat.iceberg.retention import overdue_references, retention_of
from lakeformat.tables.moment import moment_text
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.reference_reports import DeletionReport

__all__ = ["expire_tags"]


def expire_tags(
    handle: TableHandle, *, older_than: PastTime | None = None, dry_run: bool = False
) -> DeletionReport:
    """Delete tags whose retention is over, and tags whose snapshot is older than ``older_than``."""
    now = handle.environment.now_millis()
    before = None if older_than is None else past_millis("older_than", older_than, now)

    def choose(loaded: LoadedMetadata) -> list[str]:
        metadata = loaded.metadata
        over = {
            each.name
            for each in overdue_references(metadata, retention_of(metadata.properties, now))
        }

        def is_old(tag: Reference) -> bool:
            snapshot = metadata.snapshot(tag.snapshot_id)
            return before is not None and (snapshot is None or snapshot.timestamp_ms < before)

        tags = [each for each in metadata.references.values() if each.type == TAG]
        return sorted(each.name for each in tags if each.name in over or is_old(each))

    older = "" if before is None else f", or the snapshot is older than {moment_text(before)}"
    return delete_chosen(
        handle,
        TAG,
        choose,
        why=f" because the retention is over{older}",
        none="no tag has expired",
        dry_run=dry_run,
    )
