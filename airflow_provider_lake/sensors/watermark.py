# SPDX-License-Identifier: Apache-2.0
"""Waits until the watermark of a table reaches an event time."""

from __future__ import annotations

from datetime import datetime
from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.sensors.conditions import WatermarkReached, to_millis
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakeWatermarkSensor"]


class LakeWatermarkSensor(LakeTableSensor):
    """Waits until the watermark of a Paimon table has reached an event time.

    :param watermark: the event time, such as ``"2024-01-31 10:00"`` (UTC unless it has a zone), or
        epoch milliseconds
    """

    def __init__(
        self, *, watermark: str | int | datetime, **kwargs: Unpack[TableSensorArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.watermark = watermark
        self._check_arguments()

    def condition(self) -> WatermarkReached:
        """Return the condition on the watermark. Raise ``ValueError`` for a wrong argument."""
        return WatermarkReached(millis=to_millis("watermark", self.watermark))
