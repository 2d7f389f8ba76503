"""Reading all of an append table into memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.question import Question
from benchmarks.sample_table import data_files, open_table, write_table

__all__ = ["QUESTION"]


def read_table(table: Path, _: Path) -> Callable[[], pa.Table]:
    """Return a function that reads the table's files with pyarrow alone."""
    files = data_files(table)
    return lambda: pa.concat_tables([pq.read_table(file) for file in files])


def to_arrow(table: Path, _: Path) -> Callable[[], pa.Table]:
    """Return a function that calls ``to_arrow``, which includes the planning of files."""
    return lambda: open_table(table).scan().to_arrow()


QUESTION: Question[Path, pa.Table] = Question(
    sentence="What does reading an append table into memory cost beyond plain Parquet?",
    rows=10_000_000,
    make_data=write_table,
    open_data=lambda folder: folder,
    candidates={"pq.read_table": read_table, "scan().to_arrow": to_arrow},
    baseline="pq.read_table",
    answer=lambda rows: rows,
    targets={"scan().to_arrow": 0.95},
)
