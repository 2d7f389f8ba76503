# SPDX-License-Identifier: Apache-2.0
"""Makes the report of a write from the summary of its snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.iceberg.write.publish import PublishedChange
from lakeformat.tables.write_report import WriteReport

__all__ = ["UpsertReport", "WriteReport", "write_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertReport(WriteReport):
    """The report of an upsert."""

    replaced_rows: int = 0
    """The number of stored rows that were replaced, or deleted by a given row of kind ``-D`` or
    ``-U``.
    """


def write_report(table: str, published: PublishedChange) -> WriteReport:
    """Return the report of a commit, from the summary of its snapshot."""
    snapshot = published.snapshot
    if snapshot is None:
        return WriteReport(
            table=table,
            snapshot_id=None,
            attempts=published.attempts,
            reason="no rows to add or to remove, so no snapshot was published",
        )

    name = f"snapshot {snapshot.snapshot_id}"
    replayed = f"already published as {name}; no action needed"
    return WriteReport(
        table=table,
        kind=snapshot.operation,
        snapshot_id=snapshot.snapshot_id,
        rows=snapshot.count("added-records"),
        files=snapshot.count("added-data-files"),
        bytes=snapshot.count("added-files-size"),
        deleted_files=snapshot.count("deleted-data-files"),
        attempts=published.attempts,
        replayed=published.is_replayed,
        reason=replayed if published.is_replayed else f"published as {name}",
    )
