"""Compacts a table as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Partitions
from spark_jobs.job_requests.compact import CompactRequest

__all__ = ["LakeCompactOperator"]


class LakeCompactOperator(LakeJobOperator):
    """Makes fewer and larger files of a table; its rows stay as they are.

    It commits bucket by bucket: what a killed try has done stays done, and a retry goes on.
    Writers are never in the way; another compaction of the same buckets is, so give all of a
    table's compactions one pool with one slot.

    :param strategy: ``full`` brings every bucket into its best shape, ``minor`` does what is
        due
    :param where: a SQL condition on partition columns
    :param partitions: some partitions by their values, ``{"dt": "2024-01-01"}`` or a list of
        such; an empty list is none of them, an empty object all
    :param idle: only partitions nobody has written to for so long, as ``"1 h"``
    :param buckets: only these buckets of each partition
    :param order_by: sort rows of a table without primary key by these columns
    :param order_strategy: how ``order_by`` sorts: column after column, or along a curve
        through all of them
    :param bucket_executor: engine ``python``: a bucket per CPU at a time, which is the
        default, or one
    :param dry_run: say what would be done, and change nothing
    """

    job = "compact"
    request = CompactRequest
    moves_rows = True

    def __init__(
        self,
        *,
        strategy: Literal["full", "minor"] = "full",
        where: str | None = None,
        partitions: Partitions | None = None,
        idle: str | None = None,
        buckets: Sequence[int] | None = None,
        order_by: Sequence[str] | None = None,
        order_strategy: Literal["order", "zorder", "hilbert"] | None = None,
        bucket_executor: Literal["threads", "serial"] | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.strategy: Literal["full", "minor"] = strategy
        self.where = where
        self.partitions = partitions
        self.idle = idle
        self.buckets = buckets
        self.order_by = order_by
        self.order_strategy: Literal["order", "zorder", "hilbert"] | None = order_strategy
        self.bucket_executor: Literal["threads", "serial"] | None = bucket_executor
        self.is_dry_run = dry_run
        self._check_arguments()
