# SPDX-License-Identifier: Apache-2.0
"""Brings the changelog of a table up to date as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Partitions
from spark_jobs.job_requests.compact import ChangelogRequest

__all__ = ["LakeChangelogOperator"]


class LakeChangelogOperator(LakeJobOperator):
    """Compacts a Paimon table so that the missing changes are added to its changelog. The table
    option ``changelog-producer`` must be ``lookup`` or ``full-compaction``.

    The new changelog is in the snapshots after ``previous_snapshot_id``, up to and including
    ``snapshot_id`` of the result.

    :param where: a SQL condition on partition columns
    :param partitions: partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such
        dicts. An empty list selects no partition, an empty dict every partition
    :param idle: only partitions whose newest file is older than this, such as ``"1 h"``; these are
        compacted completely
    :param bucket_executor: with engine ``python``: ``threads`` compacts several buckets in
        parallel, ``serial`` one after the other. Default: ``threads``
    :param dry_run: only report what would be done
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
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.partitions = partitions
        self.idle = idle
        self.bucket_executor: Literal["threads", "serial"] | None = bucket_executor
        self.is_dry_run = dry_run
        self._check_arguments()
