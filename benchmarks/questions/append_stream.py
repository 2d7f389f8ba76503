"""Streaming all of an append table, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.question import Question
from benchmarks.sample_table import data_files, open_table, write_table
from lakeformat.files.data_file import BATCH_ROWS

__all__ = ["QUESTION"]

Batches = Iterator[pa.RecordBatch]


def by_row_group(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that reads the table's files with pyarrow alone, by row group, so that
    memory is freed early.
    """
    files = data_files(table)
    return lambda: (
        batch
        for file in map(pq.ParquetFile, files)
        for group in range(file.num_row_groups)
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[group])
    )


def by_file(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that reads the table's files with pyarrow alone, in the obvious way."""
    files = data_files(table)
    return lambda: (
        batch for file in map(pq.ParquetFile, files) for batch in file.iter_batches(BATCH_ROWS)
    )


def to_batches(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that calls ``to_batches``, which includes the planning of files."""
    return lambda: open_table(table).scan().to_batches()


def drain(batches: Batches) -> None:
    """Read every batch and keep none."""
    for _ in batches:
        pass


QUESTION: Question[Path, Batches] = Question(
    sentence="What does streaming an append table cost beyond plain Parquet?",
    rows=10_000_000,
    make_data=write_table,
    open_data=lambda folder: folder,
    candidates={
        "iter_batches by row group": by_row_group,
        "iter_batches": by_file,
        "scan().to_batches": to_batches,
    },
    baseline="iter_batches by row group",
    answer=pa.Table.from_batches,
    consume=drain,
    targets={"scan().to_batches": 0.95},
    controls=frozenset({"iter_batches"}),
)
