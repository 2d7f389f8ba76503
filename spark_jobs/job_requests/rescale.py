"""What the job ``rescale`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import Partitions, TableRequest
from spark_jobs.job_requests.values import Numbered

__all__ = ["RescaleRequest"]


@dataclass(frozen=True, kw_only=True)
class RescaleRequest(TableRequest):
    """Write partitions anew with another number of buckets; one that has it stays as it is."""

    bucket: Numbered | None = None
    """How many buckets; otherwise what the table's option ``bucket`` says."""
    where: str | None = None
    """A SQL condition on partition columns."""
    partitions: Partitions | None = None
    """Some partitions by their values, ``{"dt": "2024-01-01"}`` or a list of such; an empty list
    is none of them, an empty object all."""
    dry_run: bool = False
    """Say what would be done, and change nothing."""
