# SPDX-License-Identifier: Apache-2.0
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
    UPSERT = "UPSERT"


class Method(StrEnum):
    """The way in which a change of rows deletes rows."""

    VECTORS = "deletion vectors"
    """The positions of the rows are marked; the files are kept."""
    POSITIONS = "position deletes"
    """Files list the positions of the rows; the files of the rows are kept."""
    REWRITE = "copy on write"
    """The files are rewritten without the rows."""
    KEYS = "rows by key"
    """New rows with the same keys are written, which delete or replace the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeReport(Report):
    """The result of one DELETE or UPDATE, or of its dry run."""

    table: str
    operation: str
    method: str
    """``deletion vectors``, ``position deletes``, ``copy on write`` or ``rows by key``."""
    dry_run: bool
    read_snapshot_id: int | None
    """The searched snapshot; None if the table has none, or if ``replayed``."""
    snapshot_id: int | None = None
    """The published snapshot; None if no row met the condition, and in a dry run."""
    rows: int | None = 0
    """The number of rows that met the condition; None if ``replayed``, or if whole files were
    removed of which equality deletes had deleted some rows.
    """
    files_read: int = 0
    """The number of searched files; by their metadata, no other file has rows to change."""
    files_marked: int = 0
    files_rewritten: int = 0
    files_removed: int = 0
    """Files that were removed because no row is left in them."""
    files_added: int = 0
    bytes_added: int = 0
    attempts: int = 1
    """The number of attempts: one, and another one after each conflict."""
    replayed: bool = False
    """True if an earlier attempt with the same identity published the change."""
    millis: int = 0
    reason: str
    """One sentence for the log."""
