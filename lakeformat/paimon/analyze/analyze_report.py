# SPDX-License-Identifier: Apache-2.0
"""The report of ANALYZE, which counts rows and values for query planners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.paimon.metadata.statistics import TableStatistics
from lakeformat.tables.report import Report

__all__ = ["AnalyzeReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeReport(Report):
    """The result of one ANALYZE, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The id of the snapshot that names the statistics; None if none was published."""
    statistics: TableStatistics | None
    """The statistics of the rows that were read.

    None for a table without snapshots, or if an earlier attempt published the statistics.
    """
    skipped: tuple[str, ...] = ()
    """The names of the columns that ``"all"`` skipped, because their types have no statistics."""
    replayed: bool = False
    """True if an earlier attempt with the same identity published the statistics."""
    reason: str
    """One sentence for the log: the work done, or the reason why none was done."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        found = self.statistics
        return {
            "table": self.table,
            "dry_run": self.dry_run,
            "snapshot_id": self.snapshot_id,
            "analyzed_snapshot_id": None if found is None else found.snapshot_id,
            "schema_id": None if found is None else found.schema_id,
            "rows": None if found is None else found.merged_record_count,
            "bytes": None if found is None else found.merged_record_size,
            "columns": {} if found is None else found.column_members(),
            "skipped": list(self.skipped),
            "replayed": self.replayed,
            "reason": self.reason,
        }
