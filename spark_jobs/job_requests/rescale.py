"""Keys of the job ``rescale``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import Partitions, TableRequest
from spark_jobs.job_requests.values import Numbered

__all__ = ["RescaleRequest"]


@dataclass(frozen=True, kw_only=True)
class RescaleRequest(TableRequest):
    """Rewrite partitions with another number of buckets; a partition that already has it is
    skipped.
    """

    bucket: Numbered | None = None
    """The number of buckets. Default: the table's option ``bucket``."""
    where: str | None = None
    """A SQL condition on partition columns."""
    partitions: Partitions | None = None
    """Partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such. An empty list
    selects none, an empty object all.
    """
    dry_run: bool = False
    """Only report what would be done."""
