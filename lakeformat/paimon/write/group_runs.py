# SPDX-License-Identifier: Apache-2.0
"""Groups the rows of sorted runs by key; memory holds about one batch of each run.

The runs of a buffer are not merged yet: a key may have any number of rows. All rows of a key are in
memory at once, because a merge engine must see them together.
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
    """The rows of one run that are in memory, and the source of its other rows."""

    source: Iterator[pa.RecordBatch]
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    is_over: bool = False
    _piece: int = 1

    def fill(self) -> None:
        """Read until memory holds as many rows as the largest batch so far, or the run ends."""
        while self.rows < self._piece and not self.is_over:
            self.read_on()

    def read_on(self) -> None:
        batch = next(self.source, None)
        if batch is None:
            self.is_over = True
            return
        self.held.append(batch)
        self.rows += batch.num_rows
        self._piece = max(self._piece, batch.num_rows)

    def drop(self, rows: int) -> None:
        self.held = _without(self.held, rows)
        self.rows -= rows


def group_runs(
    sources: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder
) -> Iterator[tuple[pa.Table, KeyGroups]]:
    """Yield tables with groups of their rows, in key order; each group has all rows of one key.

    A table can have rows outside of its groups. These rows are in a group of a later table.

    Each run must be in merge order, and all its rows must be newer than the rows of earlier runs.
    """
    runs = [_UngroupedRun(source) for source in sources]
    while True:
        for run in runs:
            run.fill()
        runs = [run for run in runs if run.held]
        if not runs:
            return
        batches = [batch for run in runs for batch in run.held]
        rows = pa.Table.from_batches(batches).combine_chunks()
        groups = order.group(rows, numbered=False)
        whole = _cut(runs, groups)
        if whole:
            yield rows, part_of(groups, 0, whole)


def _cut(runs: list[_UngroupedRun], groups: KeyGroups) -> int:
    """Return the number of keys whose rows are all in memory, and drop these rows from the runs."""
    key_of = np.empty(len(groups.order), np.int64)
    key_of[groups.order] = groups.key_of
    ends = np.cumsum([run.rows for run in runs])
    last = key_of[ends - 1]
    open_ends = [int(key) for run, key in zip(runs, last, strict=True) if not run.is_over]
    whole = min(open_ends, default=len(groups))
    starts = ends - [run.rows for run in runs]
    for run, start, end, key in zip(runs, starts, ends, last, strict=True):
        run.drop(int(np.searchsorted(key_of[start:end], whole)))
        if (
            key == whole and not run.is_over
        ):  # otherwise a key with many rows would never become complete
            run.read_on()
    return whole


def _without(batches: list[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    left = []
    for batch in batches:
        if rows < batch.num_rows:
            left.append(batch.slice(rows))
        rows = max(rows - batch.num_rows, 0)
    return left
