"""Streaming a primary-key table of five overlapping runs, merged by a key of two columns."""

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

__all__ = ["QUESTION"]


def key(numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """A text, and a number in it."""
    digits = np.char.zfill((numbers // 10).astype(np.str_), 9)
    line = pa.array((numbers % 10).astype(np.int32))
    return {"k": pa.array(np.char.add("order-", digits)), "line": line}


def files(table: Path, _: Path) -> Callable[[], Batches]:
    """Every row of the files by pyarrow alone, one file after the other, merged by nobody."""
    return keyed_files(table)


def to_batches(table: Path, _: Path) -> Callable[[], Batches]:
    """What a user calls, the planning of the files included."""
    return lambda: open_keyed(table).scan().to_batches()


QUESTION: Question[Path, Batches] = Question(
    sentence="What does merging runs by a key of two columns cost beyond reading their files?",
    rows=10_000_000,
    make_data=lambda folder, rows: write_runs(folder, rows, key),
    open_data=lambda folder: folder,
    candidates={"files": files, "scan().to_batches": to_batches},
    baseline="files",
    answer=lambda rows: distinct_keys(rows, ("k", "line")),
    consume=drain,
    targets={"scan().to_batches": 0.5},
)
