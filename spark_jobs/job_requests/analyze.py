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
    """Publish statistics for query planners: the number of rows and, for chosen columns, statistics
    of their values.
    """

    columns: Literal["all"] | ColumnNames | None = None
    """Columns with statistics of their values; ``"all"`` for every column. Default: only rows are
    counted; in an Iceberg table, every column.
    """
    dry_run: bool = False
    """Read the rows, but publish nothing."""
