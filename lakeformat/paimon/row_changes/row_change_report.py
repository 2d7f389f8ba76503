"""The report of a DELETE or UPDATE, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakeformat.tables.report import Report

__all__ = ["Method", "RowChangeReport", "RowOperation"]


class RowOperation(StrEnum):
    """The operation, as snapshots name it."""

    DELETE = "DELETE"
    UPDATE = "UPDATE"


class Method(StrEnum):
    """The way in which rows are deleted."""

    VECTORS = "deletion vectors"
    """Their positions are marked; their files are kept."""
    REWRITE = "copy on write"
    """Their files are written again without them."""
    KEYS = "rows by key"
    """Rows of the same keys are written that delete or replace them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeReport(Report):
    """The outcome of one DELETE or UPDATE, or what it would do."""

    table: str
    operation: str
    method: str
    """``deletion vectors``, ``copy on write`` or ``rows by key``."""
    dry_run: bool
    read_snapshot_id: int | None
    """The snapshot that was searched; None for a table without one, and for a replay."""
    snapshot_id: int | None = None
    """The snapshot that holds the change; None if no row met the condition, and of a dry run."""
    rows: int | None = 0
    """The number of rows that met the condition; None of a replay, which has not looked."""
    files_read: int = 0
    """The number of files that were read; all other files cannot have such rows."""
    files_marked: int = 0
    files_rewritten: int = 0
    files_removed: int = 0
    """Files without any row left."""
    files_added: int = 0
    bytes_added: int = 0
    attempts: int = 1
    """The number of plans: one, and another after each conflict."""
    replayed: bool = False
    """True when an earlier try with the same identity had published already."""
    millis: int = 0
    reason: str
    """One sentence for the log."""
