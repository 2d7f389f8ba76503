"""Reads Mixed tables with and without a version field, and with changes that arrive late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.mixed_table import Batches, changed_rows, create_pair, drain, keyed_sum, open_pair
from benchmarks.question import Question
from benchmarks.sample_rows import sample_batches
from lakeformat.mixed.table import MixedTable

__all__ = ["QUESTION"]

Tables = dict[str, MixedTable]
_PLAIN, _ORDERED, _LATE = "without a version field", "versions in order", "late versions"
_FIELD = "ts"


def _make(folder: Path, rows: int) -> None:
    """Write one table for each candidate, with changes of a fifth of the rows, not merged yet."""
    for name in (_PLAIN, _ORDERED, _LATE):
        (folder / name).mkdir()
        table = create_pair(folder / name, {} if name == _PLAIN else {"lake.version-field": _FIELD})
        table.write(sample_batches(rows))
        table.compact(strategy="full")
        changes = changed_rows(rows)
        table.write(changes if name == _LATE else _newer(changes))


def _newer(changes: pa.Table) -> pa.Table:
    """Return the changes, each with a later version than any stored row has."""
    versions = changes[_FIELD]
    span = pc.subtract(pc.max(versions), pa.scalar(0, versions.type))
    place = changes.schema.get_field_index(_FIELD)
    return changes.set_column(place, _FIELD, pc.add(versions, span))


def _open(folder: Path) -> Tables:
    return {each.name: open_pair(each) for each in folder.iterdir()}


def _read(name: str) -> Callable[[Tables, Path], Callable[[], Batches]]:
    def prepare(tables: Tables, _: Path) -> Callable[[], Batches]:
        return lambda: tables[name].scan().to_batches()

    return prepare


QUESTION: Question[Tables, Batches] = Question(
    sentence="What does a version field cost a read with changes of 20 % of the rows?",
    rows=1_000_000,
    make_data=_make,
    open_data=_open,
    candidates={name: _read(name) for name in (_PLAIN, _ORDERED, _LATE)},
    baseline=_PLAIN,
    answer=keyed_sum,
    consume=drain,
)
