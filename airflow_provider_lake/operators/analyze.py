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
    """Counts the rows of a table and, for some or all columns, their values, for query planners.

    :param columns: columns whose values are counted; ``"all"`` for every column. Default: only rows
        are counted; in an Iceberg table, every column
    :param dry_run: count, but publish nothing
    """

    job = "analyze"
    request = AnalyzeRequest
    moves_rows = True

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
