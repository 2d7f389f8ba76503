# SPDX-License-Identifier: Apache-2.0
"""Waits until a consumer has read all snapshots, or all but a given number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.arguments.open_values import is_open
from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.sensors.conditions import ConsumerLag, at_least
from airflow_provider_lake.sensors.table import LakeTableSensor
from spark_jobs.job_requests.values import check_consumer_name

__all__ = ["LakeConsumerLagSensor"]


class LakeConsumerLagSensor(LakeTableSensor):
    """Waits until a consumer has at most ``max_behind`` snapshots left to read.

    The sensor also waits for a consumer that does not exist yet. If the next snapshot of the
    consumer has expired, the task fails at once, because the consumer cannot continue.

    :param consumer: the name of the consumer
    :param max_behind: the most snapshots that the consumer may have left to read
    """

    def __init__(
        self, *, consumer: str, max_behind: int = 0, **kwargs: Unpack[TableSensorArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.consumer = consumer
        self.max_behind = max_behind
        self._check_arguments()

    @classmethod
    def _check_values(cls, task_id: str, given: Mapping[str, Any]) -> None:
        """Raise ``LakeArgumentError`` for a name that no consumer can have: the sensor would wait
        forever.
        """
        from lakeformat import InvalidRequestError

        name = given.get("consumer")
        if name is None or is_open(name):
            return
        try:
            check_consumer_name(name)
        except InvalidRequestError as reason:
            raise LakeArgumentError(f"task {task_id!r}: argument 'consumer': {reason}") from None

    def condition(self) -> ConsumerLag:
        """Return the condition on the consumer. Raise ``ValueError`` for a wrong argument."""
        return ConsumerLag(
            consumer=self.consumer, max_behind=at_least(0, "max_behind", self.max_behind)
        )
