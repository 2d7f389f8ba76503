"""What the job ``rollback`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import CommitRequest, Moment

__all__ = ["RollbackRequest"]


@dataclass(frozen=True, kw_only=True)
class RollbackRequest(CommitRequest):
    """Go back to a snapshot: by number, by tag, or the last of a time or watermark; with the same
    commit pair, once."""

    snapshot: int | None = None
    """The number of the snapshot."""
    tag: str | None = None
    """A tag of it."""
    as_of: Moment | None = None
    """The newest snapshot of that time."""
    watermark: int | None = None
    """The oldest snapshot that has reached it."""
    as_latest: bool = True
    """Publish the old rows as a new snapshot; ``false`` cuts newer snapshots off instead."""
    force: bool = False
    """Cut off snapshots although tags or branches began there."""
    dry_run: bool = False
    """Say what would be done, and change nothing."""
