"""Brings the changelog of a table up to date as an Airflow task."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Partitions
from spark_jobs.job_requests.compact import ChangelogRequest

__all__ = ["LakeChangelogOperator"]


class LakeChangelogOperator(LakeJobOperator):
    """Compacts what the changelog of a table does not tell of yet.

    ``previous_snapshot_id`` and ``snapshot_id`` of the result bound what a consumer has to read.

    :param where: a SQL condition on partition columns
    :param partitions: some partitions by their values, ``{"dt": "2024-01-01"}`` or a list of
        such; an empty list is none of them, an empty object all
    :param idle: only partitions nobody has written to for so long, as ``"1 h"``
    :param bucket_executor: engine ``python``: a bucket per CPU at a time, which is the
        default, or one
    :param dry_run: say what would be done, and change nothing
    """

    job = "changelog"
    request = ChangelogRequest
    moves_rows = True

    def __init__(
        self,
        *,
        where: str | None = None,
        partitions: Partitions | None = None,
        idle: str | None = None,
        bucket_executor: Literal["threads", "serial"] | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.partitions = partitions
        self.idle = idle
        self.bucket_executor: Literal["threads", "serial"] | None = bucket_executor
        self.is_dry_run = dry_run
        self._check_arguments()
