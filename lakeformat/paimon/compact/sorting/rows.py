# SPDX-License-Identifier: Apache-2.0
"""Sort the rows of many files in bounded memory: into ranges of keys first, then each range.

Rows that fit into memory are sorted at once. If there are more, a sample of their keys gives the
bounds of ranges of about the same size, and each range waits in temporary files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.compact.sorting.curves import ByteRows
from lakeformat.paimon.compact.sorting.order import RowOrder
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.write.assign import rows_by_place
from lakeformat.rows.spill import Spill

__all__ = ["sorted_batches"]

_SAMPLES_PER_RANGE = 1000
_OUTPUT_ROWS = 1 << 16

Batches = Iterable[pa.RecordBatch]
ReadColumns = Callable[[Sequence[str]], Batches]
"""Reads the named columns of all rows."""


def sorted_batches(
    rows: Batches, read_columns: ReadColumns, row_count: int, order: RowOrder, options: TableOptions
) -> Iterator[pa.RecordBatch]:
    """Yield all rows in order; if temporary files are limited, only each piece is in order."""
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
        options: TableOptions,
        spill: Spill,
    ) -> None:
        self._read_columns = read_columns
        self._row_count = row_count
        self._order = order
        # Rows are held twice while they are sorted.
        self._limit = max(options.write_buffer_size_bytes // 2, 1)
        self._spill = spill
        self._bounds: npt.NDArray[np.bytes_] | None = None

    def sort(self, rows: Batches) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            held.append(batch)
            size += batch.nbytes
            if size >= self._limit:
                yield from self._put_away(pa.Table.from_batches(held))
                held, size = [], 0
        last = [pa.Table.from_batches(held)] if held else []
        if len(self._spill):
            for table in last:
                self._add(table)
            yield from self._ranges()
        else:
            for table in last:
                yield from self._in_order(table)

    def _put_away(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        if not self._spill.has_room:
            yield from self._ranges()
        if not self._spill.has_room:  # no temporary file is allowed at all
            yield from self._in_order(table)
            return
        self._add(table)

    def _add(self, table: pa.Table) -> None:
        if self._bounds is None:
            row_bytes = max(table.nbytes / table.num_rows, 1)
            self._bounds = self._sampled(int(row_bytes * self._row_count // self._limit) * 2 + 1)
        keys = _comparable(self._order.keys(table))
        ranges = np.searchsorted(self._bounds, keys, side="right").astype(np.int64)
        self._spill.add(table.schema, _parts(table, ranges))

    def _sampled(self, ranges: int) -> npt.NDArray[np.bytes_]:
        """Return bounds of ranges that have about the same number of rows."""
        step = max(self._row_count // (ranges * _SAMPLES_PER_RANGE), 1)
        parts = []
        left = 0
        for batch in self._read_columns(self._order.columns):
            picked = pa.array(np.arange(left, batch.num_rows, step))
            left = (left - batch.num_rows) % step
            parts.append(_comparable(self._order.keys(batch.take(picked))))
        sample = np.sort(np.concatenate(parts))
        places = np.arange(1, ranges) * len(sample) // ranges
        return np.unique(sample[places])

    def _ranges(self) -> Iterator[pa.RecordBatch]:
        """Yield the sorted rows of the temporary files; a range larger than memory is sorted in
        pieces."""
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
                            yield from self._in_order(pa.Table.from_batches(held))
                            held, size = [], 0
                if held:
                    yield from self._in_order(pa.Table.from_batches(held))
        self._spill.clear()

    def _in_order(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self._order.sorted(table).to_batches(max_chunksize=_OUTPUT_ROWS)


def _parts(table: pa.Table, ranges: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    by_range = rows_by_place(ranges)
    table = table.take(pa.array(by_range.order))
    start = 0
    for number, positions in by_range:
        yield number, table.slice(start, len(positions))
        start += len(positions)


def _comparable(keys: ByteRows) -> npt.NDArray[np.bytes_]:
    """Return keys as values that numpy compares byte by byte."""
    return np.ascontiguousarray(keys).view(f"S{keys.shape[1]}")[:, 0]
