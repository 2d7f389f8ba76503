"""Waits until a compaction is worth it."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.conditions import CompactionNeeded
from airflow_provider_lake.sensors.table import LakeTableSensor

__all__ = ["LakeCompactionNeededSensor"]


class LakeCompactionNeededSensor(LakeTableSensor):
    """Waits until a compaction would read at least so many files; returns how much it would read.

    Only metadata is read. ``minor`` asks for what is due, ``full`` for anything not in best shape.
    """

    def __init__(self, *, strategy: str = "minor", min_files: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if strategy not in ("minor", "full"):
            raise ValueError(f"strategy is 'minor' or 'full', got {strategy!r}")
        self.strategy = strategy
        self.min_files = min_files

    def condition(self) -> CompactionNeeded:
        """How much is enough."""
        return CompactionNeeded(strategy=self.strategy, min_files=self.min_files)
