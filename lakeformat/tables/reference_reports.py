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
    """The id of the first snapshot of the branch; None if the branch has no snapshots."""
    reason: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForwardReport(Report):
    """The report of a fast forward of main to a branch, or of its dry run."""

    table: str
    branch: str
    snapshots: tuple[int, ...]
    """The ids of the snapshots that main got."""
    schemas: tuple[int, ...]
    tags: tuple[str, ...]
    dry_run: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionReport(Report):
    """The result of the deletion of tags or of a branch, or of its dry run."""

    table: str
    deleted: tuple[str, ...]
    """The names of the deleted tags, or of the branch."""
    files: dict[str, int]
    """The number of deleted files by kind."""
    bytes: int
    """The size in bytes of the deleted files; a file of unknown size counts as 0."""
    failures: int
    failed: tuple[str, ...]
    """The URIs of the first files that could not be deleted, each with the reason.

    Repeat the deletion to delete these files.
    """
    dry_run: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
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
    """The id of the snapshot whose rows the table has after the rollback."""
    snapshot_id: int
    """The id of the newest snapshot after the rollback."""
    as_latest: bool
    removed_snapshots: tuple[int, ...] = ()
    """The ids of deleted snapshots; ``remove_orphans`` deletes their files."""
    removed_changelogs: tuple[int, ...] = ()
    removed_tags: tuple[str, ...] = ()
    moved_consumers: tuple[str, ...] = ()
    """The ids of consumers that had read snapshots after the target.

    The next snapshot that these consumers read is the one right after the target.
    """
    added_files: int = 0
    """With ``as_latest``: the number of data files that the rollback added to the table again."""
    deleted_files: int = 0
    """With ``as_latest``: the number of data files that the rollback removed from the table."""
    protection_tag: str | None = None
    """The tag that keeps the files of the target; None without one.

    ``tags.expire`` deletes the tag when no snapshot needs it any more.
    """
    objection: str | None = None
    """In a dry run: the reason why the rollback needs ``force``; None if it does not."""
    replayed: bool = False
    """True if an earlier attempt with the same commit identity did the rollback.

    The report then describes that attempt.
    """
    dry_run: bool
    reason: str
