"""Compaction of 200 files of 4 MB of an Iceberg table: row groups are copied."""

from __future__ import annotations

from benchmarks.small_files import LARGER_FILE_ROWS, compaction_question

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting small files of an Iceberg table cost if no row changes?",
    rows=200 * LARGER_FILE_ROWS,
    file_rows=LARGER_FILE_ROWS,
    target=5.0,
)
