# SPDX-License-Identifier: Apache-2.0
"""Reports the health of a table, as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.health import HealthRequest

__all__ = ["LakeHealthOperator"]


class LakeHealthOperator(LakeJobOperator):
    """Returns facts about a table, a score, and reasons with advice; changes nothing.

    If ``fail_when`` fails the task, the task is not retried.

    :param time_travel: also read every snapshot, tag and branch, to count the bytes that only they
        keep
    :param unknown: also list the directories, to find unreferenced, missing and truncated files.
        Only for Paimon tables
    :param fail_when: ``degraded``: fail if the verdict is ``degraded`` or ``unhealthy``;
        ``unhealthy``: fail only if it is ``unhealthy``. Default: never fail because of the
        verdict
    """

    job = "health"
    request = HealthRequest

    def __init__(
        self,
        *,
        time_travel: bool = True,
        unknown: bool = False,
        fail_when: Literal["degraded", "unhealthy"] | None = None,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.time_travel = time_travel
        self.unknown = unknown
        self.fail_when = fail_when
        self._check_arguments()
