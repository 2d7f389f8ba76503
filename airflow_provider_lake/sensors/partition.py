"""Waits for a partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lake.conditions import PartitionThere
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakePartitionSensor"]


class LakePartitionSensor(LakeTableSensor):
    """Waits until a partition has rows, or with ``done`` until its ``_SUCCESS`` file exists.

    ``{"dt": "2024-01-31"}`` may name some columns of the partition; with ``done``, it must name
    all.
    """

    def __init__(
        self, *, partition: Mapping[str, str | int], done: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.done = done
        self._check_arguments()

    def condition(self) -> PartitionThere:
        """Return the condition on the partition."""
        if not self.partition:
            raise ValueError("argument 'partition' is empty: write {'dt': '2024-01-31'}")
        return PartitionThere(partition=dict(self.partition), done=self.done)
