# SPDX-License-Identifier: Apache-2.0
"""Merges sorted runs as streams; memory holds a few batches of each run, not whole runs.

The merge works in rounds. In each round, the next rows of each run are in memory. Each run has a
last key there, and the smallest of these keys is the limit. All rows with keys up to the limit are
in memory, so they are merged together. If only one run has such rows, they pass through without
sorting or copying.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.key_order import orderable
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.rows.encoded_texts import one_table
from lakeformat.rows.memory import merge_memory

__all__ = ["Round", "batch_rows_of", "merge_runs", "rounds_of"]

CHUNK_ROWS = 256 * 1024
"""The target for the number of rows merged at once: few enough for the processor's cache."""
FEWEST, MOST = 4 * 1024, 32 * 1024
"""The smallest and the largest number of rows in a batch.

Both are large enough for fast work on whole columns, and divide the number of rows in a row group.
"""

Round: TypeAlias = list[tuple[int, list[pa.RecordBatch]]]
"""All rows of some keys, which are merged together.

Each item has the number of a run, and batches with its rows of these keys. The oldest run is first.
"""

Key: TypeAlias = tuple[tuple[bool, object], ...]
"""The primary key of a row as pairs of (is not null, value), which Python compares in key order:
nulls first.
"""


def batch_rows_of(runs: int) -> int:
    """Return the number of rows per batch when ``runs`` runs are merged."""
    return min(max(CHUNK_ROWS >> max(runs - 1, 0).bit_length(), FEWEST), MOST)


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]],
    order: MergeOrder,
    engine: MergeEngine,
    *,
    numbered: bool = True,
    ahead: Callable[[Iterator[Round]], Iterator[Round]] = iter,
) -> Iterator[pa.Table]:
    """Yield the merged rows of all runs in key order, each key once; merged rows may be retracts.

    Each run must have its keys in order, and each key once. If rows compare equal, the row of the
    later run is newer. ``numbered=False`` does not compare sequence numbers; this is right only if
    later runs have larger ones. ``ahead`` may fetch rounds before they are needed. Raise
    CorruptTableError if several runs are merged and the batches of one are not in key order.
    """
    if len(runs) == 1:
        for batch in runs[0]:
            yield pa.Table.from_batches([batch])
        return
    for parts in ahead(rounds_of(runs, order.keys)):
        rows = one_table([batch for _, batches in parts for batch in batches])
        if len(parts) > 1:
            # As one table, because the sort and each column of the result use positions in it.
            rows = rows.combine_chunks(memory_pool=merge_memory())
            rows = engine.merge(rows, order.group(rows, numbered=numbered))
        yield rows


def rounds_of(runs: Sequence[Iterator[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[Round]:
    """Yield the rows of all runs in rounds: all rows of a key are in one round, and keys ascend."""
    target = batch_rows_of(len(runs))
    active = [_UnmergedRun(number, run, keys) for number, run in enumerate(runs)]
    while True:
        for run in active:
            run.fill(target)
        active = [run for run in active if run.rows]
        if not active:
            return
        last = min((run.last_key for run in active if not run.is_complete), default=None)
        yield [(run.number, part) for run in active if (part := run.take(last))]


class _UnmergedRun:
    """The rows of a run that were read but not merged yet."""

    def __init__(self, number: int, batches: Iterator[pa.RecordBatch], keys: Sequence[str]) -> None:
        self.number = number
        self._batches, self._keys = batches, keys
        self._waiting: list[_RunBatch] = []
        self._newest: Key | None = None
        self.rows = 0
        self.is_complete = False
        """True once the last batch of the run was read."""

    @property
    def last_key(self) -> Key:
        return self._waiting[-1].last_key

    def fill(self, rows: int) -> None:
        while self.rows < rows and not self.is_complete:
            batch = next(self._batches, None)
            if batch is None:
                self.is_complete = True
            elif batch.num_rows:
                self._add(_RunBatch(batch, self._keys))

    def _add(self, batch: _RunBatch) -> None:
        if self._newest is not None and batch.first_key <= self._newest:
            raise CorruptTableError(
                f"a sorted run has the key {_shown(batch.first_key)} after {_shown(self._newest)}, "
                "but keys of a run must rise: the rows of a data file, or two files of one level, "
                "are out of order; restore the files from a backup, or overwrite the partition "
                "with the engine that made them"
            )
        self._newest = batch.last_key
        self._waiting.append(batch)
        self.rows += len(batch)

    def take(self, last: Key | None) -> list[pa.RecordBatch]:
        """Remove and return the rows whose key is at most ``last``; all rows for ``last=None``."""
        parts: list[pa.RecordBatch] = []
        while self._waiting:
            batch = self._waiting[0]
            count = batch.count_until(last)
            if count:
                parts.append(batch.take(count))
                self.rows -= count
            if len(batch):
                break
            del self._waiting[0]
        return parts


class _RunBatch:
    """A batch in key order, without the rows that ``take`` has already returned."""

    def __init__(self, batch: pa.RecordBatch, keys: Sequence[str]) -> None:
        self._batch = batch
        self._columns = [_comparable(batch.column(key)) for key in keys]
        self._numbers = _numbers(self._columns)
        self._start = 0
        self.first_key = self._key(0)
        self.last_key = self._key(batch.num_rows - 1)

    def __len__(self) -> int:
        return int(self._batch.num_rows) - self._start

    def count_until(self, last: Key | None) -> int:
        if last is None or self.last_key <= last:
            return len(self)
        if self._numbers is not None:
            [(_, value)] = last
            wanted = np.array(
                value, self._numbers.dtype
            )  # otherwise numpy would convert the whole array
            return int(np.searchsorted(self._numbers[self._start :], wanted, side="right"))
        rows = range(self._start, self._batch.num_rows)
        return int(bisect_right(rows, last, key=self._key))

    def take(self, count: int) -> pa.RecordBatch:
        part = self._batch.slice(self._start, count)
        self._start += count
        return part

    def _key(self, row: int) -> Key:
        values = (column[row].as_py() for column in self._columns)
        return tuple((value is not None, value) for value in values)


def _shown(key: Key) -> str:
    return f"({', '.join(str(value) for _, value in key)})"


def _numbers(columns: Sequence[pa.Array]) -> npt.NDArray[np.integer[Any]] | None:
    """Return the keys as numbers, for a fast search.

    Return None unless the key is a single column of whole numbers without nulls.
    """
    [first, *more] = columns
    if more or first.null_count or not pa.types.is_integer(first.type):
        return None
    found: npt.NDArray[np.integer[Any]] = first.to_numpy()
    return found


def _comparable(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return orderable(pa.chunked_array([column])).chunk(0)
    if pa.types.is_temporal(column.type):  # nanoseconds have no Python value
        return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return column
