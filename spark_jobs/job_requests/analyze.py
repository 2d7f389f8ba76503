"""What the job ``analyze`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.values import ColumnNames

__all__ = ["AnalyzeRequest"]


@dataclass(frozen=True, kw_only=True)
class AnalyzeRequest(CommitRequest):
    """Count the rows and, of some columns or of all, their values, for query planners."""

    columns: Literal["all"] | ColumnNames | None = None
    """Whose values are counted, besides the rows."""
    dry_run: bool = False
    """Count, and publish nothing."""
