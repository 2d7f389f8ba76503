# SPDX-License-Identifier: Apache-2.0
"""Waits until a compaction would read enough files."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableSensorArguments
from airflow_provider_lake.sensors.conditions import CompactionNeeded, at_least
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakeCompactionNeededSensor"]


class LakeCompactionNeededSensor(LakeTableSensor):
    """Waits until a compaction would read at least ``min_files`` files; returns the numbers of
    files and bytes.

    The sensor reads only metadata.

    :param strategy: the strategy of the compaction, ``minor`` or ``full``. See ``strategy`` of
        ``LakeCompactOperator`` for the files that each of them reads
    :param min_files: wait until the compaction would read at least this many files
    """

    def __init__(
        self,
        *,
        strategy: Literal["minor", "full"] = "minor",
        min_files: int = 1,
        **kwargs: Unpack[TableSensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.strategy: Literal["minor", "full"] = strategy
        self.min_files = min_files
        self._check_arguments()

    def condition(self) -> CompactionNeeded:
        """Return the condition on the number of files. Raise ``ValueError`` for a wrong
        argument.
        """
        return CompactionNeeded(
            strategy=self.strategy, min_files=at_least(1, "min_files", self.min_files)
        )
