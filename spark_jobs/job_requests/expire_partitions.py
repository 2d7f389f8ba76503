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
    """Delete the rows of old partitions of a Paimon table, in one or more commits."""

    expiration_time: Expiration | None = None
    """Delete partitions older than this. Default: the table option ``partition.expiration-time``;
    without it the job fails.
    """
    strategy: Literal["values-time", "update-time"] | None = None
    """``values-time`` takes the age of a partition from its values, ``update-time`` from its
    newest file, which a compaction may have written. Default: the table option
    ``partition.expiration-strategy``.
    """
    timestamp_pattern: TimePattern | None = None
    """Pattern that builds a time from partition values, such as ``"$dt $hour:00:00"``. Default: the
    table option ``partition.timestamp-pattern``; without it the first partition column.
    """
    timestamp_formatter: TimeFormatter | None = None
    """Format of the time that ``timestamp_pattern`` builds, such as ``"yyyyMMdd"``. Default: the
    table option ``partition.timestamp-formatter``; without it ``yyyy-MM-dd HH:mm:ss`` or
    ``yyyy-MM-dd``.
    """
    max_num: Numbered | None = None
    """Delete at most this many partitions. Default: the table option
    ``partition.expiration-max-num``.
    """
    batch_size: Numbered | None = None
    """The most partitions that one commit deletes. Default: the table option
    ``partition.expiration-batch-size``; without it one commit deletes all.
    """
    dry_run: bool = False
    """Only report what would be deleted."""
