# SPDX-License-Identifier: Apache-2.0
"""Waits until a partition has rows or is marked as done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.sensors.conditions import PartitionThere
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakePartitionSensor"]


class LakePartitionSensor(LakeTableSensor):
    """Waits until a partition has rows, or with ``done`` until its ``_SUCCESS`` file exists.

    The sensor supports partitions of Paimon and Iceberg tables. With ``done`` it supports only
    Paimon tables.

    :param partition: values of partition columns, ``{"dt": "2024-01-31"}``. Without ``done``, some
        of the columns are enough; then any matching partition counts
    :param done: wait for the ``_SUCCESS`` file of one partition. Then ``partition`` needs the
        values of all partition columns
    """

    def __init__(
        self,
        *,
        partition: Mapping[str, str | int],
        done: bool = False,
        **kwargs: Unpack[TableSensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.done = done
        self._check_arguments()

    def condition(self) -> PartitionThere:
        """Return the condition on the partition. Raise ``ValueError`` for a wrong argument."""
        if not self.partition:
            raise ValueError("argument 'partition' is empty: write {'dt': '2024-01-31'}")
        return PartitionThere(partition=dict(self.partition), done=self.done)
