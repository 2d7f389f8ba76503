# SPDX-License-Identifier: Apache-2.0
"""The report of a commit to a table of any format, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["WriteReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport(Report):
    """The outcome of one commit."""

    table: str
    kind: str | None = None
    """The kind of the snapshot in the words of the format, such as ``APPEND`` in Paimon and
    ``append`` in Iceberg; None when there was nothing to commit."""
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
