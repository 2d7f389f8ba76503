"""Compaction of small files of an Iceberg table, each with deleted rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.small_files import FILE_ROWS, compaction_question

__all__ = ["QUESTION"]


def live(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.not_equal(rows.column("status"), "returned"))


QUESTION = compaction_question(
    "What does compacting an Iceberg table with deleted rows cost?",
    rows=50 * FILE_ROWS,
    target=0.8,
    change=lambda table: table.delete("status = 'returned'"),
    floor_change=live,
)
