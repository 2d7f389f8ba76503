# SPDX-License-Identifier: Apache-2.0
"""The report of a commit to a table of any format."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["WriteReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport(Report):
    """The report of one commit."""

    table: str
    kind: str | None = None
    """The kind of the snapshot in the words of the format, such as ``APPEND`` in Paimon and
    ``append`` in Iceberg; None if there was nothing to commit.
    """
    snapshot_id: int | None
    """The id of the published snapshot; None if there was nothing to commit."""
    rows: int = 0
    """The number of added rows."""
    files: int = 0
    """The number of added files."""
    bytes: int = 0
    deleted_files: int = 0
    unpublished_files: int = 0
    """The number of files in the commit messages of this call that remain unpublished, because an
    earlier attempt has published the commit with other files.

    Delete these files with ``Table.abort``.
    """
    attempts: int = 0
    replayed: bool = False
    """True if an earlier attempt with the same commit identity had already published the commit."""
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def sentence(self) -> str:
        """The kind of commit and its numbers in one sentence, for the log."""
        added = f"{counted(self.files, 'file')} of {size(self.bytes)} added"
        taken = f", {self.deleted_files:,} deleted" if self.deleted_files else ""
        tries = f", in {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.kind}, {self.reason}: {added}{taken}{tries}"
