# SPDX-License-Identifier: Apache-2.0
"""The report of a rollback, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["RollbackReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackReport(Report):
    """The outcome of one rollback, or of a dry run of it."""

    table: str
    target: int
    """The snapshot whose rows the table has after the rollback."""
    snapshot_id: int
    """The newest snapshot after the rollback."""
    as_latest: bool
    removed_snapshots: tuple[int, ...] = ()
    """The snapshots that were deleted; their files are orphans."""
    removed_changelogs: tuple[int, ...] = ()
    removed_tags: tuple[str, ...] = ()
    moved_consumers: tuple[str, ...] = ()
    """Consumers that had read newer snapshots than the target; they now continue after it."""
    added_files: int = 0
    """The number of data files that a rollback with ``as_latest`` restored."""
    deleted_files: int = 0
    """The number of data files that a rollback with ``as_latest`` removed."""
    protection_tag: str | None = None
    """The tag that keeps the restored files; ``tags.expire`` deletes it once it is not needed."""
    objection: str | None = None
    """In a dry run: the reason why the rollback would be refused without ``force``."""
    replayed: bool = False
    """True if an earlier attempt with the same identity did the work and this is its report."""
    dry_run: bool
    reason: str
