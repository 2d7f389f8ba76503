"""Compaction of 40 small files of an Iceberg table, along the Z-order curve of two columns."""

from __future__ import annotations

from benchmarks.small_files import FILE_ROWS, compaction_question

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does it cost to order the files of an Iceberg table along a Z-order curve?",
    rows=40 * FILE_ROWS,
    target=0.4,
    how={"order_by": ["v", "ts"], "order_strategy": "zorder"},
)
