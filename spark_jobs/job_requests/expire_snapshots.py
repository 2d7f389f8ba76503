"""What the job ``expire_snapshots`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Numbered, PastTime

__all__ = ["ExpireSnapshotsRequest"]


@dataclass(frozen=True, kw_only=True)
class ExpireSnapshotsRequest(TableRequest):
    """Remove old snapshots with the files only they need; the newest always stays."""

    retain_max: Numbered | None = None
    """How many of the newest stay at most; by default as the table's options have it."""
    retain_min: Numbered | None = None
    """How many of the newest stay whatever their age; by default as the options have it."""
    older_than: PastTime | None = None
    """Between those, what was replaced before then goes: a time, or an age such as ``"2 d"``."""
    limit: Numbered | None = None
    """How many go at most."""
    dry_run: bool = False
    """Say what would go, and remove nothing."""

    def __post_init__(self) -> None:
        least, most = self.retain_min, self.retain_max
        if least is not None and most is not None and least > most:
            raise refusal(
                f"key 'retain_min' is {least} and 'retain_max' is {most}: no more can be kept at "
                "least than at most"
            )
