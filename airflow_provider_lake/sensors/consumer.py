# SPDX-License-Identifier: Apache-2.0
"""Waits for a consumer to read."""

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
    """Waits until a consumer has read all but ``max_behind`` snapshots.

    It also waits for a consumer that does not exist yet. If the next snapshot of the consumer has
    expired, the task fails at once, because the consumer cannot continue.

    :param consumer: the name of the consumer
    :param max_behind: the most snapshots that it has not read
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
        """Raise ``LakeArgumentError`` for a name that a consumer cannot have: the wait would never
        end.
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
        """Return the condition on the consumer."""
        return ConsumerLag(
            consumer=self.consumer, max_behind=at_least(0, "max_behind", self.max_behind)
        )
