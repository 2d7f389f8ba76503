"""The common parts of questions about merging on read, for keys of any type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.keyed_table import (
    Batches,
    distinct_keys,
    drain,
    keyed_files,
    open_keyed,
    write_runs,
)
from benchmarks.question import Question

__all__ = ["Key", "MergeQuestion", "Numbers", "merge_question"]

Numbers = npt.NDArray[np.int64]
Key = Callable[[Numbers], dict[str, pa.Array]]
"""Returns the key columns for ascending numbers; the key ascends with them."""

MergeQuestion = Question[Path, Batches]

_SCAN, _FILES_VERIFIED = "scan().to_batches", "files, verified"


def merge_question(sentence: str, key: Key, target: float) -> MergeQuestion:
    """Return the question that compares streaming a table of five overlapping runs with reading its
    files.
    """
    columns = tuple(key(np.zeros(1, np.int64)))
    return Question(
        sentence=sentence,
        rows=10_000_000,
        make_data=lambda folder, rows: write_runs(folder, rows, key),
        open_data=lambda folder: folder,
        candidates={"files": _files, _FILES_VERIFIED: _verified, _SCAN: _to_batches},
        baseline="files",
        answer=lambda rows: distinct_keys(rows, columns),
        consume=drain,
        targets={_SCAN: target},
        controls=frozenset({_FILES_VERIFIED}),
    )


def _files(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that reads every row of the files with pyarrow alone, file by file, without
    a merge.
    """
    return keyed_files(table)


def _verified(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that reads the files without a merge. Like every scan, it verifies the
    checksums of all pages.
    """
    return keyed_files(table, verified=True)


def _to_batches(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a function that calls ``to_batches``, which includes the planning of files."""
    return lambda: open_keyed(table).scan().to_batches()
