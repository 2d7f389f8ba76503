"""Compaction of 40 small files of an Iceberg table, sorted by a text and a number."""

from __future__ import annotations

from benchmarks.small_files import FILE_ROWS, compaction_question

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does it cost to sort the files of an Iceberg table?",
    rows=40 * FILE_ROWS,
    target=0.5,
    how={"order_by": ["status", "v desc nulls last"]},
)
