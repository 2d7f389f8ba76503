# SPDX-License-Identifier: Apache-2.0
"""Waits until readers of Iceberg see the newest snapshots of a Paimon table."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.sensors.conditions import PublicationCurrent, at_least
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakePublicationSensor"]


class LakePublicationSensor(LakeTableSensor):
    """Waits until readers of Iceberg, with or without an Iceberg catalog, miss at most
    ``max_behind`` snapshots of a Paimon table.

    The table needs the option ``metadata.iceberg.storage``. Use the sensor before tasks of another
    engine that read the table as an Iceberg table.

    :param max_behind: the most snapshots of the table that readers of Iceberg may miss
    """

    def __init__(self, *, max_behind: int = 0, **kwargs: Unpack[TableSensorArguments]) -> None:
        super().__init__(**kwargs)
        self.max_behind = max_behind
        self._check_arguments()

    def condition(self) -> PublicationCurrent:
        """Return the condition on the publication. Raise ``ValueError`` for a wrong argument."""
        return PublicationCurrent(max_behind=at_least(0, "max_behind", self.max_behind))
