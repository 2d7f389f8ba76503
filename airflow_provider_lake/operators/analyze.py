# SPDX-License-Identifier: Apache-2.0
"""Collects statistics of a table as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.analyze import AnalyzeRequest

__all__ = ["LakeAnalyzeOperator"]


class LakeAnalyzeOperator(LakeJobOperator):
    """Publishes statistics for query planners: of a Paimon table the number of rows, and
    statistics of columns; of an Iceberg table the number of distinct values in each column.

    :param columns: columns whose values get statistics; ``"all"`` for every column. Default: none,
        only the rows are counted; for an Iceberg table, every column
    :param dry_run: compute the statistics, but publish nothing
    """

    job = "analyze"
    request = AnalyzeRequest

    def __init__(
        self,
        *,
        columns: Literal["all"] | Sequence[str] | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.columns: Literal["all"] | Sequence[str] | None = columns
        self.is_dry_run = dry_run
        self._check_arguments()
