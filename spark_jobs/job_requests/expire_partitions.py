"""What the job ``expire_partitions`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.values import Expiration, Numbered, TimeFormatter, TimePattern

__all__ = ["ExpirePartitionsRequest"]


@dataclass(frozen=True, kw_only=True)
class ExpirePartitionsRequest(TableRequest):
    """Delete the rows of old partitions; what is not said is as the table's options have it."""

    expiration_time: Expiration | None = None
    """Partitions older than this go: an age such as ``"7 d"``, or a time."""
    strategy: Literal["values-time", "update-time"] | None = None
    """What tells the age of a partition: its values, or its last write."""
    timestamp_pattern: TimePattern | None = None
    """How values make a time, as in ``"$dt $hour:00:00"``."""
    timestamp_formatter: TimeFormatter | None = None
    """How that time is written, as in ``"yyyyMMdd"``."""
    max_num: Numbered | None = None
    """How many go at most."""
    batch_size: Numbered | None = None
    """How many go in one commit."""
    dry_run: bool = False
    """Say what would go, and delete nothing."""
