"""Reads a Mixed table. A fifth of its rows have changes that are not merged yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.mixed_table import Batches, drain, keyed_sum, open_pair, read_files, write_pair
from benchmarks.question import Question
from lakeformat.mixed.table import MixedTable

__all__ = ["QUESTION"]


def _files(table: MixedTable, _: Path) -> Callable[[], Batches]:
    """Return a function that reads every row of the files of both stores with pyarrow alone,
    without a merge: the floor.
    """
    return read_files(table)


def _scan(table: MixedTable, _: Path) -> Callable[[], Batches]:
    """Return a function that calls ``to_batches``, which includes the planning of both stores."""
    return lambda: table.scan().to_batches()


QUESTION: Question[MixedTable, Batches] = Question(
    sentence="What does merging changes of 20 % of the rows of a Mixed table cost beyond reading?",
    rows=10_000_000,
    make_data=write_pair,
    open_data=open_pair,
    candidates={"files": _files, "scan().to_batches": _scan},
    baseline="files",
    answer=keyed_sum,
    consume=drain,
    targets={"scan().to_batches": 0.5},
)
