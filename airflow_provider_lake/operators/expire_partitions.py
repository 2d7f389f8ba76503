# SPDX-License-Identifier: Apache-2.0
"""Expires the partitions of a table as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.expire_partitions import ExpirePartitionsRequest
from spark_jobs.job_requests.values import Expiration

__all__ = ["LakeExpirePartitionsOperator"]


class LakeExpirePartitionsOperator(LakeJobOperator):
    """Deletes the rows of old partitions of a Paimon table, in one or more commits.

    :param expiration_time: delete partitions older than this: an age such as ``"7 d"``, or a time.
        Default: the table option ``partition.expiration-time``; without it the task fails
    :param strategy: ``values-time`` takes the age of a partition from its values, ``update-time``
        from its newest file, which a compaction may have written. Default: the table option
        ``partition.expiration-strategy``
    :param timestamp_pattern: pattern that builds a time from partition values, such as ``"$dt
        $hour:00:00"``. Default: the table option ``partition.timestamp-pattern``; without it the
        first partition column
    :param timestamp_formatter: format of the time that ``timestamp_pattern`` builds, such as
        ``"yyyyMMdd"``. Default: the table option ``partition.timestamp-formatter``; without it
        ``yyyy-MM-dd HH:mm:ss`` or ``yyyy-MM-dd``
    :param max_num: delete at most this many partitions. Default: the table option
        ``partition.expiration-max-num``
    :param batch_size: the most partitions that one commit deletes. Default: the table option
        ``partition.expiration-batch-size``; without it one commit deletes all
    :param dry_run: only report what would be deleted
    """

    job = "expire_partitions"
    request = ExpirePartitionsRequest
    _never_missing = (*LakeJobOperator._never_missing, "expiration_time", "max_num")

    def __init__(
        self,
        *,
        expiration_time: Expiration | None = None,
        strategy: Literal["values-time", "update-time"] | None = None,
        timestamp_pattern: str | None = None,
        timestamp_formatter: str | None = None,
        max_num: int | None = None,
        batch_size: int | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.expiration_time = expiration_time
        self.strategy: Literal["values-time", "update-time"] | None = strategy
        self.timestamp_pattern = timestamp_pattern
        self.timestamp_formatter = timestamp_formatter
        self.max_num = max_num
        self.batch_size = batch_size
        self.is_dry_run = dry_run
        self._check_arguments()
