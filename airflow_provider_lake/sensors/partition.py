"""Waits for a partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lake.conditions import PartitionThere
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakePartitionSensor"]


class LakePartitionSensor(LakeTableSensor):
    """Waits until a partition has rows, or with ``done`` until its ``_SUCCESS`` file is there.

    ``{"dt": "2024-01-31"}`` may name some columns of the partition; with ``done``, all of them.
    """

    def __init__(
        self, *, partition: Mapping[str, str | int], done: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.done = done
        self._check_arguments()

    def condition(self) -> PartitionThere:
        """The partition."""
        if not self.partition:
            raise ValueError("argument 'partition' names no column: write {'dt': '2024-01-31'}")
        return PartitionThere(partition=dict(self.partition), done=self.done)
