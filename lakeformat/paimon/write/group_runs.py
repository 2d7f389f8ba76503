"""Puts the rows of sorted runs together by key, in bounded memory: a piece of each run at a time.

Unlike those of files, the runs of a buffer are not merged yet: a key may have any number of rows.
All rows of one key are held at once, since an engine must see them together: the only row of a key
stays as it is, with its kind, and where there are more what a retract means depends on the rows
before it. A call whose rows are mostly of one key needs the memory for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.write.sorted_rows import part_of
from lakeformat.rows.groups import KeyGroups

__all__ = ["group_runs"]


@dataclass(slots=True)
class _UngroupedRun:
    """One run: what is left of it, and what was read and could not be given on yet."""

    source: Iterator[pa.RecordBatch]
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    is_over: bool = False
    _piece: int = 1

    def fill(self) -> None:
        """Have as many rows as a piece of the run at least, while there are any."""
        while self.rows < self._piece and not self.is_over:
            self.read_on()

    def read_on(self) -> None:
        """One piece more."""
        batch = next(self.source, None)
        if batch is None:
            self.is_over = True
            return
        self.waiting.append(batch)
        self.rows += batch.num_rows
        self._piece = max(self._piece, batch.num_rows)

    def drop(self, rows: int) -> None:
        """Forget the first rows that wait."""
        self.waiting = _without(self.waiting, rows)
        self.rows -= rows


def group_runs(
    sources: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder
) -> Iterator[tuple[pa.Table, KeyGroups]]:
    """The rows of all runs by key, every key whole, keys in their order, piece by piece.

    Each run is in merge order, and its rows are newer than those of runs before.
    """
    runs = [_UngroupedRun(source) for source in sources]
    while True:
        for run in runs:
            run.fill()
        runs = [run for run in runs if run.waiting]
        if not runs:
            return
        batches = [batch for run in runs for batch in run.waiting]
        rows = pa.Table.from_batches(batches).combine_chunks()
        groups = order.group(rows, numbered=False)
        whole = _cut(runs, groups)
        if whole:
            yield rows, part_of(groups, 0, whole)


def _cut(runs: list[_UngroupedRun], groups: KeyGroups) -> int:
    """How many keys are whole: no run has more of them. Their rows no longer wait."""
    key_of = np.empty(len(groups.order), np.int64)
    key_of[groups.order] = groups.key_of
    ends = np.cumsum([run.rows for run in runs])
    last = key_of[ends - 1]
    open_ends = [int(key) for run, key in zip(runs, last, strict=True) if not run.is_over]
    whole = min(open_ends, default=len(groups))
    starts = ends - [run.rows for run in runs]
    for run, start, end, key in zip(runs, starts, ends, last, strict=True):
        run.drop(int(np.searchsorted(key_of[start:end], whole)))
        if key == whole and not run.is_over:  # or a key with many rows would never be whole
            run.read_on()
    return whole


def _without(batches: list[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """What is left behind the first rows."""
    left = []
    for batch in batches:
        if rows < batch.num_rows:
            left.append(batch.slice(rows))
        rows = max(rows - batch.num_rows, 0)
    return left
