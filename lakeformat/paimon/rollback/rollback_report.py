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
    """The snapshot whose rows the table has now."""
    snapshot_id: int
    """The newest snapshot now."""
    as_latest: bool
    removed_snapshots: tuple[int, ...] = ()
    """The snapshots that were deleted; their files are orphans."""
    removed_changelogs: tuple[int, ...] = ()
    removed_tags: tuple[str, ...] = ()
    moved_consumers: tuple[str, ...] = ()
    """Consumers that were ahead of the target, and continue after it."""
    added_files: int = 0
    """The number of data files that a rollback as latest restored."""
    deleted_files: int = 0
    """The number of data files that it removed."""
    protection_tag: str | None = None
    """The tag that keeps the restored files; ``tags.expire`` deletes it once it is not needed."""
    objection: str | None = None
    """The reason why the rollback of a dry run would be refused without force."""
    replayed: bool = False
    """True if an earlier try of the same identity did it: this is its report."""
    dry_run: bool
    reason: str
