# SPDX-License-Identifier: Apache-2.0
"""Reports about clones and migrations, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CloneReport", "MigrateReport", "MigratedFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport(Report):
    """The outcome of cloning one table; in a dry run, what would be done."""

    source: str
    target: str
    what: str
    """The state that was copied: ``everything``, or a snapshot by its number."""
    dry_run: bool
    files: int
    """Data, index and metadata files of the clone."""
    copied: int
    """Files that an earlier attempt had not copied."""
    bytes: int
    snapshot_ids: tuple[int, ...]
    """The snapshots of the main branch of the clone."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedFile:
    """One file of a migrated directory, and the action for it."""

    file: str
    partition: str
    how: str
    """``registered`` in place, ``copied`` unchanged, or ``converted`` into a new file."""
    reason: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateReport(Report):
    """The outcome of migrating a directory; in a dry run, what would be done."""

    source: str
    table: str
    dry_run: bool
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    files: tuple[MigratedFile, ...]
    skipped: tuple[str, ...]
    """Hidden files, which are ignored."""
    rows: int
    snapshot_id: int | None
    replayed: bool
    reason: str
    """One sentence for the log: what happened, or why nothing did."""
