# SPDX-License-Identifier: Apache-2.0
"""The reports of clones and migrations."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CloneReport", "MigrateReport", "MigratedFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport(Report):
    """The report of cloning one table, or of its dry run."""

    source: str
    target: str
    what: str
    """The part that was copied: ``everything``, or a snapshot by its number."""
    dry_run: bool
    files: int
    """The number of data, index and metadata files of the clone."""
    copied: int
    """The number of files that this call copied; the rest existed from an earlier attempt."""
    bytes: int
    snapshot_ids: tuple[int, ...]
    """The snapshots of the main branch of the clone."""
    reason: str
    """The outcome in one sentence, for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedFile:
    """A file of a migrated directory, and what was done with it."""

    file: str
    partition: str
    how: str
    """``registered`` in place, ``copied`` unchanged, or ``converted`` into a new file."""
    reason: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateReport(Report):
    """The report of migrating a directory, or of its dry run."""

    source: str
    table: str
    dry_run: bool
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    files: tuple[MigratedFile, ...]
    skipped: tuple[str, ...]
    """Ignored hidden files."""
    rows: int
    snapshot_id: int | None
    replayed: bool
    reason: str
    """The outcome in one sentence, for the log."""
