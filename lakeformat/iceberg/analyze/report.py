# SPDX-License-Identifier: Apache-2.0
"""The report of statistics for query planners, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.tables.report import Report

__all__ = ["IcebergAnalyzeReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergAnalyzeReport(Report):
    """The result of one ANALYZE, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: None = None
    """Always None: statistics make no snapshot."""
    analyzed_snapshot_id: int | None = None
    """The snapshot whose rows were counted; None for a table without snapshots."""
    rows: int | None = None
    """The number of rows; None if none were read."""
    statistics: Mapping[str, int] | None = None
    """The number of distinct values of each column; an estimate above 4096."""
    skipped: tuple[str, ...] = ()
    """Columns that were left out, because values of their types are not counted."""
    replayed: bool = False
    """True if the snapshot had these statistics before."""
    reason: str
    """One sentence for the log: the work done, or the reason why none was done."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
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
