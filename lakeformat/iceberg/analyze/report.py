# SPDX-License-Identifier: Apache-2.0
"""The reports of two counts: distinct values by column, and rows and files by partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.tables.report import Report

__all__ = ["IcebergAnalyzeReport", "PartitionStatisticsReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergAnalyzeReport(Report):
    """The report of one ANALYZE, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: None = None
    """Always None, because statistics make no snapshot."""
    analyzed_snapshot_id: int | None = None
    """The snapshot whose rows were counted; None for a table without snapshots."""
    rows: int | None = None
    """The number of rows that were read; None if no data file was read."""
    statistics: Mapping[str, int] | None = None
    """The number of distinct values of each column; numbers above 4096 are estimates. None if the
    table has no snapshot, or no column whose values can be counted.
    """
    skipped: tuple[str, ...] = ()
    """Columns that were not counted, because values of their types cannot be counted."""
    replayed: bool = False
    """True if the snapshot already had these statistics."""
    reason: str
    """The outcome in one sentence, for the log."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        found = self.statistics or {}
        return {
            "table": self.table,
            "dry_run": self.dry_run,
            "snapshot_id": self.snapshot_id,
            "analyzed_snapshot_id": self.analyzed_snapshot_id,
            "rows": self.rows,
            "columns": {name: {"distinctCount": count} for name, count in found.items()},
            "skipped": list(self.skipped),
            "replayed": self.replayed,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsReport(Report):
    """The report of counting rows and files by partition, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: None = None
    """Always None, because statistics make no snapshot."""
    analyzed_snapshot_id: int | None = None
    """The snapshot whose files were counted; None for a table without snapshots."""
    partitions: int | None = None
    """The number of partitions, counted separately for each spec; None if no manifest was read."""
    replayed: bool = False
    """True if the snapshot already had these statistics."""
    reason: str
    """The outcome in one sentence, for the log."""
