"""Waits for a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_lake.conditions import PartitionThere
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakePartitionSensor"]


class LakePartitionSensor(LakeTableSensor):
    """Waits until a partition has rows, or with ``done`` until its ``_SUCCESS`` file is there.

    ``{"dt": "2024-01-31"}`` may name some columns of the partition; with ``done``, all of them.
    """

    template_fields: Sequence[str] = (*LakeTableSensor.template_fields, "partition")

    def __init__(self, *, partition: Mapping[str, str], done: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.done = done

    def condition(self) -> PartitionThere:
        """The partition."""
        given: object = self.partition
        if not isinstance(given, Mapping) or not given:
            raise ValueError(
                f"partition is a mapping such as {{'dt': '2024-01-31'}}, got {self.partition!r}"
            )
        return PartitionThere(partition=dict(self.partition), done=self.done)
