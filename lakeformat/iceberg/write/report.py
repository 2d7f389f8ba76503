# SPDX-License-Identifier: Apache-2.0
"""The report of a write, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.iceberg.write.publish import PublishedChange
from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["WriteReport", "write_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport(Report):
    """The outcome of one commit."""

    table: str
    kind: str | None = None
    """``append``, ``overwrite`` or ``delete``; None when there was nothing to commit."""
    snapshot_id: int | None
    """Snapshot with the change; None when there was nothing to commit."""
    rows: int
    """Rows added."""
    files: int
    """Files added."""
    bytes: int
    deleted_files: int = 0
    unpublished_files: int = 0
    """For a repeated commit of messages: their files that the earlier attempt did not publish;
    ``abort`` removes them."""
    attempts: int
    replayed: bool
    """True if an earlier attempt with the same identity had already published."""
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def sentence(self) -> str:
        """The snapshot with its numbers, for the log."""
        added = f"{counted(self.files, 'file')} of {size(self.bytes)} added"
        taken = f", {self.deleted_files:,} deleted" if self.deleted_files else ""
        tries = f", in {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.kind}, {self.reason}: {added}{taken}{tries}"


def write_report(table: str, published: PublishedChange) -> WriteReport:
    """Report a commit by the summary of its snapshot."""
    snapshot = published.snapshot
    if snapshot is None:
        return WriteReport(
            table=table,
            snapshot_id=None,
            rows=0,
            files=0,
            bytes=0,
            attempts=published.attempts,
            replayed=False,
            reason="no rows to add or to remove, so no snapshot was published",
        )

    def number(key: str) -> int:
        return int(snapshot.summary.get(key, "0"))

    name = f"snapshot {snapshot.snapshot_id}"
    replayed = f"already published as {name}; no action needed"
    return WriteReport(
        table=table,
        kind=snapshot.operation,
        snapshot_id=snapshot.snapshot_id,
        rows=number("added-records"),
        files=number("added-data-files"),
        bytes=number("added-files-size"),
        deleted_files=number("deleted-data-files"),
        attempts=published.attempts,
        replayed=published.is_replayed,
        reason=replayed if published.is_replayed else f"published as {name}",
    )
