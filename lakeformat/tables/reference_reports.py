# SPDX-License-Identifier: Apache-2.0
"""Reports on tags, branches and rollbacks, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakeformat.tables.report import Report

__all__ = ["BranchReport", "DeletionReport", "FastForwardReport", "RollbackReport", "TagReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagReport(Report):
    """The result for one tag."""

    table: str
    tag: str
    action: str
    """``created``, ``kept``, ``replaced`` or ``renamed``; in a dry run the planned action."""
    snapshot_id: int
    retained_seconds: float | None = None
    reason: str = field(default="")
    """The outcome in one sentence, for the log."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReport(Report):
    """The result for one branch."""

    table: str
    branch: str
    action: str
    """``created``, ``kept`` or ``renamed``; in a dry run the planned action."""
    snapshot_id: int | None
    """First snapshot of the branch; None for a branch without snapshots."""
    reason: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForwardReport(Report):
    """The snapshots, schemas and tags that main received from a branch."""

    table: str
    branch: str
    snapshots: tuple[int, ...]
    """Snapshots that main received."""
    schemas: tuple[int, ...]
    tags: tuple[str, ...]
    dry_run: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionReport(Report):
    """The result of deleting tags or a branch."""

    table: str
    deleted: tuple[str, ...]
    """The deleted tags or branch."""
    files: dict[str, int]
    """Number of removed files by kind."""
    bytes: int
    """Removed bytes, as far as metadata knows the sizes."""
    failures: int
    failed: tuple[str, ...]
    """The first files that could not be removed; the next deletion tries again."""
    dry_run: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "table": self.table,
            "deleted": [*self.deleted],
            "files": dict(self.files),
            "bytes": self.bytes,
            "failures": self.failures,
            "failed": [*self.failed],
            "dry_run": self.dry_run,
            "reason": self.reason,
        }


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
