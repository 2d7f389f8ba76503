# SPDX-License-Identifier: Apache-2.0
"""Changes the number of buckets of a table, as an Airflow task."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Partitions
from spark_jobs.job_requests.rescale import RescaleRequest

__all__ = ["LakeRescaleOperator"]


class LakeRescaleOperator(LakeJobOperator):
    """Rewrites partitions of a Paimon table with another number of buckets; skips partitions that
    already have this number.

    :param bucket: the number of buckets. Default: the table option ``bucket``. If the number
        differs from the option, the rewritten partitions refuse added rows until you set the option
        to this number; an overwrite is accepted. A table with postponed buckets (``bucket=-2``)
        needs this argument; do not change its option
    :param where: a SQL condition on partition columns
    :param partitions: partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such
        dicts. An empty list selects no partition, an empty dict every partition
    :param dry_run: only report what would be done
    """

    job = "rescale"
    request = RescaleRequest
    moves_rows = True

    def __init__(
        self,
        *,
        bucket: int | None = None,
        where: str | None = None,
        partitions: Partitions | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.bucket = bucket
        self.where = where
        self.partitions = partitions
        self.is_dry_run = dry_run
        self._check_arguments()
