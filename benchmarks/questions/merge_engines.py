"""Merges the same rows with the default engine, and with each engine that computes new values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.keyed_table import Batches, distinct_keys, drain, open_keyed, write_runs
from benchmarks.question import Question
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]


def deduplicate(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a read that keeps the last row of each key."""
    return lambda: open_keyed(table).scan().to_batches()


def partial_update(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a read that keeps each column's last value that is not null."""
    return lambda: open_keyed(table, merge_engine="partial-update").scan().to_batches()


def aggregation(table: Path, _: Path) -> Callable[[], Batches]:
    """Return a read that computes two sums and a maximum, and keeps the last texts."""
    options = {
        "merge_engine": "aggregation",
        "fields__v__aggregate_function": "sum",
        "fields__amt__aggregate_function": "sum",
        "fields__ts__aggregate_function": "max",
    }
    return lambda: open_keyed(table, **options).scan().to_batches()


QUESTION: Question[Path, Batches] = Question(
    sentence="What do engines that compute new values cost beyond keeping the last row?",
    rows=10_000_000,
    make_data=lambda folder, rows: write_runs(folder, rows, key),
    open_data=lambda folder: folder,
    candidates={
        "deduplicate": deduplicate,
        "partial-update": partial_update,
        "aggregation": aggregation,
    },
    baseline="deduplicate",
    answer=distinct_keys,
    consume=drain,
    targets={"partial-update": 0.5, "aggregation": 0.5},
)
