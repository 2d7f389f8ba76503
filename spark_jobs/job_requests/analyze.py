# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``analyze``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.values import ColumnNames

__all__ = ["AnalyzeRequest"]


@dataclass(frozen=True, kw_only=True)
class AnalyzeRequest(CommitRequest):
    """Publish statistics for query planners. A Paimon table gets the number of rows, and statistics
    of columns. An Iceberg table gets the number of distinct values in each column.
    """

    columns: Literal["all"] | ColumnNames | None = None
    """Columns whose values get statistics; ``"all"`` for every column. Default: none, only the rows
    are counted; for an Iceberg table, every column.
    """
    dry_run: bool = False
    """Compute the statistics, but publish nothing."""
