"""Reads files that a compaction made by copying row groups, and files that it wrote anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.question import Question
from benchmarks.small_files import FILE_ROWS, opened, sums, write_small_files

__all__ = ["QUESTION"]

Batches = Iterator[pa.RecordBatch]


def make(folder: Path, rows: int) -> None:
    """Write the same small files to two tables, and compact each in one of the two ways."""
    write_small_files(folder, rows, "bench.copied").compact(strategy="full")
    write_small_files(folder, rows, "bench.anew").compact(strategy="full", rewrite_all=True)


def reading(name: str) -> Callable[[Path, Path], Callable[[], Batches]]:
    return lambda folder, _: opened(folder, f"bench.{name}").scan().to_batches


QUESTION: Question[Path, Batches] = Question(
    sentence="What does it cost to read row groups that a compaction copied?",
    rows=100 * FILE_ROWS,
    make_data=make,
    open_data=lambda folder: folder,
    candidates={"written anew": reading("anew"), "copied": reading("copied")},
    baseline="written anew",
    answer=sums,
    consume=sums,
    targets={"copied": 1 / 1.1},
)
