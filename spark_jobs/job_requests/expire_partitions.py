# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``expire_partitions``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.values import Expiration, Numbered, TimeFormatter, TimePattern

__all__ = ["ExpirePartitionsRequest"]


@dataclass(frozen=True, kw_only=True)
class ExpirePartitionsRequest(TableRequest):
    """Delete the rows of old partitions. Each key replaces an option of the table."""

    expiration_time: Expiration | None = None
    """Delete partitions older than this: an age such as ``"7 d"``, or a time."""
    strategy: Literal["values-time", "update-time"] | None = None
    """``values-time`` takes the age of a partition from its values, ``update-time`` from its last
    write.
    """
    timestamp_pattern: TimePattern | None = None
    """Pattern that builds a time from partition values, such as ``"$dt $hour:00:00"``."""
    timestamp_formatter: TimeFormatter | None = None
    """Format of the time that ``timestamp_pattern`` builds, such as ``"yyyyMMdd"``."""
    max_num: Numbered | None = None
    """Delete at most this many partitions."""
    batch_size: Numbered | None = None
    """The most partitions that one commit deletes."""
    dry_run: bool = False
    """Only report what would be deleted."""
