"""Says how a table fares, as an Airflow task."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.health import HealthRequest

__all__ = ["LakeHealthOperator"]


class LakeHealthOperator(LakeJobOperator):
    """Returns facts, a score, and reasons with advice; changes nothing.

    :param time_travel: look at every snapshot, tag and branch for the bytes they alone keep
    :param unknown: list the directories for files nothing refers to, and for such as are gone
    """

    job = "health"
    request = HealthRequest

    def __init__(
        self,
        *,
        time_travel: bool = True,
        unknown: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.time_travel = time_travel
        self.unknown = unknown
        self._check_arguments()
