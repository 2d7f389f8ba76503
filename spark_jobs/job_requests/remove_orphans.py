"""What the job ``remove_orphans`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, PastTime, Share, age_millis

__all__ = ["RemoveOrphansRequest"]

_DAY_MILLIS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class RemoveOrphansRequest(TableRequest):
    """Remove files that no snapshot, tag, branch or changelog leads to; ask first what goes."""

    older_than: PastTime | None = None
    """Only files last changed before then: a time, or an age such as ``"2 d"``; by default a day
    before now or the newest commit, whichever is older."""
    dry_run: bool = True
    """Say what would go, and remove nothing."""
    running_since: Moment | None = None
    """When the oldest write under way began: younger files stay."""
    allow_younger: bool = False
    """Nobody writes: files of the last day may go."""
    max_share: Share = 0.5
    """More than this part of the table's files or bytes is refused."""
    external_paths: bool = False
    """Look outside of the table too, where no other table may keep files."""
    staged_older_than: PastTime | None = None
    """Give up staged results nobody has published since then, with their files: a time, or an age
    such as ``"7 d"``. Else they all stay."""

    def __post_init__(self) -> None:
        age = None if self.older_than is None else age_millis(self.older_than)
        if age is not None and age < _DAY_MILLIS and not self.allow_younger:
            raise refusal(
                f"key 'older_than' is {self.older_than!r}, and files of a day are left to writes "
                "under way: say a day or more; or stop every writer, and say 'allow_younger'"
            )
