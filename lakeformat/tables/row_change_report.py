# SPDX-License-Identifier: Apache-2.0
"""The report of a DELETE or UPDATE of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakeformat.tables.report import Report

__all__ = ["Method", "RowChangeReport", "RowOperation"]


class RowOperation(StrEnum):
    """The kind of change, as written in the summary of a snapshot."""

    DELETE = "DELETE"
    UPDATE = "UPDATE"
    UPSERT = "UPSERT"


class Method(StrEnum):
    """The way in which a DELETE or UPDATE removes the old rows."""

    VECTORS = "deletion vectors"
    """Deletion vectors mark the rows as deleted; data files are not rewritten."""
    POSITIONS = "position deletes"
    """Position delete files list the rows; data files are not rewritten."""
    REWRITE = "copy on write"
    """Each file with a matching row is rewritten without its matching rows."""
    KEYS = "rows by key"
    """Rows with the same keys are written: they delete or replace the old rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeReport(Report):
    """The report of a DELETE or UPDATE, or of its dry run."""

    table: str
    operation: str
    method: str
    """The value of a ``Method``, such as ``deletion vectors`` or ``copy on write``."""
    dry_run: bool
    read_snapshot_id: int | None
    """The id of the snapshot in which rows were searched.

    None if the table has no snapshot, or if ``replayed``.
    """
    snapshot_id: int | None = None
    """The id of the published snapshot; None if none was published, as in a dry run."""
    rows: int | None = 0
    """The number of rows that met the condition.

    None if ``replayed``. Also None if whole data files were removed together with equality or
    position delete files: metadata does not show how many of the rows were deleted before.
    """
    files_read: int = 0
    """The number of searched files. A file is not searched if metadata shows that all or none of
    its rows match.
    """
    files_marked: int = 0
    files_rewritten: int = 0
    files_removed: int = 0
    """The number of files that were removed because all their rows were deleted or updated."""
    files_added: int = 0
    bytes_added: int = 0
    attempts: int = 1
    """The number of attempts: 1, plus 1 for each conflict with another commit; 0 if no attempt was
    needed.
    """
    replayed: bool = False
    """True if an earlier attempt with the same commit identity published the change."""
    millis: int = 0
    reason: str
    """The outcome in one sentence, for the log."""
