"""What the job ``rollback`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, Numbered, TagName

__all__ = ["RollbackRequest"]

_TARGETS = ("snapshot", "tag", "as_of", "watermark")


@dataclass(frozen=True, kw_only=True)
class RollbackRequest(CommitRequest):
    """Go back to a snapshot: by number, by tag, or the last of a time or watermark; with the same
    commit pair, once."""

    snapshot: Numbered | None = None
    """The number of the snapshot."""
    tag: TagName | None = None
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

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        given = [key for key in _TARGETS if getattr(self, key) is not None]
        if len(given) != 1:
            raise refusal(
                f"a table goes back to one of {', '.join(_TARGETS)}: "
                f"got {' and '.join(given) or 'none'}"
            )
        if self.force and self.as_latest:
            raise refusal(
                "key 'force' is for a rollback that takes snapshots away: say 'as_latest' false "
                "with it, or leave it out"
            )
