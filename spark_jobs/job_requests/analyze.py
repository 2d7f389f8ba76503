"""Keys of the job ``analyze``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.values import ColumnNames

__all__ = ["AnalyzeRequest"]


@dataclass(frozen=True, kw_only=True)
class AnalyzeRequest(CommitRequest):
    """Count the rows of a table and, for some or all columns, their values, for query planners."""

    columns: Literal["all"] | ColumnNames | None = None
    """Columns whose values are counted; ``"all"`` for every column. Default: only rows are
    counted.
    """
    dry_run: bool = False
    """Count, but publish nothing."""
