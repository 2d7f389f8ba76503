# SPDX-License-Identifier: Apache-2.0
"""Reports of operations on tags and branches, and of rollbacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakeformat.tables.report import Report

__all__ = ["BranchReport", "DeletionReport", "FastForwardReport", "RollbackReport", "TagReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagReport(Report):
    """The report of an operation on one tag."""

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
    """The report of an operation on one branch."""

    table: str
    branch: str
    action: str
    """``created``, ``kept`` or ``renamed``; in a dry run the planned action."""
    snapshot_id: int | None
    """The first snapshot of the branch; None if it has no snapshots."""
    reason: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForwardReport(Report):
    """The report of a fast forward: the snapshots, schemas and tags that main got from a branch."""

    table: str
    branch: str
    snapshots: tuple[int, ...]
    """The snapshots that main got."""
    schemas: tuple[int, ...]
    tags: tuple[str, ...]
    dry_run: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionReport(Report):
    """The report of a deletion of tags or of a branch."""

    table: str
    deleted: tuple[str, ...]
    """The names of the deleted tags, or of the branch."""
    files: dict[str, int]
    """The number of deleted files by kind."""
    bytes: int
    """The deleted bytes; a file of unknown size counts as 0."""
    failures: int
    failed: tuple[str, ...]
    """The first files that could not be deleted, each with the reason; repeat the deletion to
    delete them."""
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
    """The report of a rollback, or of its dry run."""

    table: str
    target: int
    """The snapshot whose rows the table has after the rollback."""
    snapshot_id: int
    """The newest snapshot after the rollback."""
    as_latest: bool
    removed_snapshots: tuple[int, ...] = ()
    """The deleted snapshots; ``remove_orphans`` deletes their files."""
    removed_changelogs: tuple[int, ...] = ()
    removed_tags: tuple[str, ...] = ()
    moved_consumers: tuple[str, ...] = ()
    """Consumers that had read snapshots after the target; they now continue right after the
    target."""
    added_files: int = 0
    """The number of data files that a rollback with ``as_latest`` added again."""
    deleted_files: int = 0
    """The number of data files that a rollback with ``as_latest`` removed."""
    protection_tag: str | None = None
    """The tag that keeps the files of the target; ``tags.expire`` deletes it when it is not
    needed."""
    objection: str | None = None
    """In a dry run: the reason why the rollback would be refused without ``force``."""
    replayed: bool = False
    """True if an earlier attempt with the same identity did the work; this is its report."""
    dry_run: bool
    reason: str
