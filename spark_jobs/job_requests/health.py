"""What the job ``health`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest

__all__ = ["HealthRequest"]


@dataclass(frozen=True, kw_only=True)
class HealthRequest(TableRequest):
    """Say how a table fares: facts, a score, and reasons with advice."""

    time_travel: bool = True
    """Look at every snapshot, tag and branch for the bytes they alone keep."""
    unknown: bool = False
    """List the directories for files nothing refers to, and for such as are gone or cut short."""
    fail_when: Literal["degraded", "unhealthy"] | None = None
    """Fail, with the reasons and advice, where the verdict is this one or worse."""
