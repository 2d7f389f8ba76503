"""Says how a table fares, as an Airflow task."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.health import HealthRequest

__all__ = ["LakeHealthOperator"]


class LakeHealthOperator(LakeJobOperator):
    """Returns facts, a score, and reasons with advice; changes nothing.

    A table that is as bad as ``fail_when`` says fails the task at once, without retries.

    :param time_travel: look at every snapshot, tag and branch for the bytes they alone keep
    :param unknown: list the directories for files nothing refers to, and for such as are gone or
        cut short
    :param fail_when: fail where the verdict is ``degraded`` or worse, or ``unhealthy``
    """

    job = "health"
    request = HealthRequest

    def __init__(
        self,
        *,
        time_travel: bool = True,
        unknown: bool = False,
        fail_when: Literal["degraded", "unhealthy"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.time_travel = time_travel
        self.unknown = unknown
        self.fail_when = fail_when
        self._check_arguments()
