# SPDX-License-Identifier: Apache-2.0
"""Sorts the rows of many files in bounded memory: first into ranges, then each range.

If all rows fit into memory, they are sorted at once. Otherwise a sample gives the bounds of ranges
of about the same size, and the rows of each range are written to temporary files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lakeformat.rows.groups import Positions
from lakeformat.rows.spill import Spill, SpillOptions
from lakeformat.rows.take_rows import take_rows

__all__ = ["RowOrder", "sorted_batches"]

_SAMPLES_PER_RANGE = 1000
_OUTPUT_ROWS = 1 << 16

Batches = Iterable[pa.RecordBatch]
ReadColumns = Callable[[Sequence[str]], Batches]
"""A function that reads only the named columns, of all rows."""


class RowOrder(Protocol):
    """The interface of an order in which rows are sorted."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are compared."""

    def positions(self, rows: pa.Table) -> Positions:
        """Return the positions of the rows in sorted order; equal rows keep their order."""


def sorted_batches(
    rows: Batches,
    read_columns: ReadColumns,
    row_count: int,
    order: RowOrder,
    options: SpillOptions,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows in order.

    If the limit of temporary files is reached, or if one range of the rows does not fit into
    memory, the result consists of several pieces, each of which is in order by itself.
    ``read_columns`` reads columns of the same rows again, for a sample. Raise UnavailableError if
    the disk cannot store temporary files.
    """
    spill = Spill(options)
    try:
        yield from _Sorter(read_columns, row_count, order, options, spill).sort(rows)
    finally:
        spill.clear()


class _Sorter:
    def __init__(
        self,
        read_columns: ReadColumns,
        row_count: int,
        order: RowOrder,
        options: SpillOptions,
        spill: Spill,
    ) -> None:
        self._read_columns = read_columns
        self._row_count = row_count
        self._order = order
        # The other half is for the keys, the column that is being moved, and the rows in the
        # writer.
        self._limit = max(options.write_buffer_size_bytes // 2, 1)
        self._spill = spill
        self._bounds: pa.Table | None = None

    def sort(self, rows: Batches) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            held.append(batch)
            size += batch.nbytes
            if size >= self._limit:
                yield from self._put_away(held)
                size = 0
        if not len(self._spill):
            yield from self._in_order(held)
            return
        if held:
            self._add(held)
        yield from self._ranges()

    def _put_away(self, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not self._spill.has_room:
            yield from self._ranges()
        if self._spill.has_room:
            self._add(held)
        else:  # no temporary file is allowed at all
            yield from self._in_order(held)

    def _add(self, held: list[pa.RecordBatch]) -> None:
        """Write the rows in ``held`` to a temporary file, range by range, and empty ``held``.

        The first call chooses the bounds of the ranges.
        """
        table = pa.Table.from_batches(held)
        held.clear()
        if self._bounds is None:
            row_bytes = max(table.nbytes / table.num_rows, 1)
            self._bounds = self._sampled(int(row_bytes * self._row_count // self._limit) * 2 + 1)
        self._spill.add(table.schema, self._parts(table, self._bounds))

    def _sampled(self, ranges: int) -> pa.Table:
        """Return bounds that divide the rows into ``ranges`` ranges of about the same size.

        The bounds are sampled rows, one fewer than there are ranges.
        """
        step = max(self._row_count // (ranges * _SAMPLES_PER_RANGE), 1)
        parts = []
        left = 0
        for batch in self._read_columns(self._order.columns):
            picked = pa.array(np.arange(left, batch.num_rows, step))
            left = (left - batch.num_rows) % step
            parts.append(batch.select(self._order.columns).take(picked))
        sample = pa.Table.from_batches(parts)
        places = np.arange(1, ranges) * sample.num_rows // ranges
        return take_rows(sample, self._order.positions(sample)[places])

    def _parts(self, table: pa.Table, bounds: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of each range that has rows in ``table``, with these rows sorted."""
        # The bounds are sorted with the rows, before and after those that equal them.
        compared = pa.concat_tables([bounds, table.select(self._order.columns), bounds])
        positions = self._order.positions(compared) - bounds.num_rows
        is_row = (positions >= 0) & (positions < table.num_rows)
        ranges = np.cumsum(~is_row)[is_row]
        ordered = take_rows(table, positions[is_row])
        starts = np.flatnonzero(np.diff(ranges, prepend=-1))
        for start, end in zip(starts, np.append(starts[1:], len(ranges)), strict=True):
            yield int(ranges[start]), ordered.slice(start, end - start)

    def _ranges(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the temporary files, range by range, then delete the files.

        A range that does not fit into memory is sorted in pieces.
        """
        if not len(self._spill):
            return
        with self._spill.opened() as spilled:
            for place in self._spill.places():
                held: list[pa.RecordBatch] = []
                size = 0
                for run in spilled.runs(place):
                    for batch in run:
                        held.append(batch)
                        size += batch.nbytes
                        if size >= self._limit:
                            yield from self._in_order(held)
                            size = 0
                yield from self._in_order(held)
        self._spill.clear()

    def _in_order(self, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in ``held`` sorted, and empty ``held``.

        The sorted rows are built column by column, so only one column is in memory twice.
        """
        if not held:
            return
        table = pa.Table.from_batches(held)
        held.clear()
        schema, positions = table.schema, self._order.positions(table)
        columns = []
        while table.num_columns:
            columns += take_rows(table.select([0]), positions).columns
            table = table.remove_column(0)
        ordered = pa.Table.from_arrays(columns, schema=schema)
        yield from ordered.to_batches(max_chunksize=_OUTPUT_ROWS)
