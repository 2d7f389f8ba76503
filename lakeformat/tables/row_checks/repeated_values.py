# SPDX-License-Identifier: Apache-2.0
"""Counts, in bounded memory, rows whose values in given columns occur more than once.

Equal values are kept once, with a count. Values that do not fit into memory are written to
temporary files. Each file has up to 256 parts, and the hash of a value chooses its part. So equal
values are in parts with the same number, and the parts of one number are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.key_words import column_words
from lakeformat.rows.row_hashes import row_hashes
from lakeformat.rows.spill import Spill, SpillOptions
from lakeformat.rows.word_order import sort_by_words
from lakeformat.tables.row_checks.example_rows import MOST_EXAMPLES, example_texts
from lakeformat.types.types import DataField

__all__ = ["RepeatedValues"]

_COUNT = "count of rows"
_PARTS = np.uint64(256)
_FIRST_BYTES = 32 << 20
_FILES_OF_ONE_SIZE = 64


class RepeatedValues:
    """Counts repeated values of ``columns``. A row with a null in one of these columns is not
    counted.
    """

    def __init__(self, columns: Sequence[DataField], options: SpillOptions) -> None:
        self._columns = columns
        self._names = [column.name for column in columns]
        # Counting needs the rows in memory twice.
        self._most_bytes = max(options.write_buffer_size_bytes // 2, 1)
        self._spill = Spill(options)
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self.repeated_rows = 0
        self.examples: list[str] = []

    def add(self, batch: pa.RecordBatch) -> None:
        values = batch.select(self._names)
        known = reduce(pc.and_, map(pc.is_valid, values.columns))
        rows = pa.Table.from_batches([values.filter(known)])
        ones = pa.array(np.ones(rows.num_rows, np.int64))
        self._hold(rows.append_column(_COUNT, ones))
        if self._held_bytes >= self._limit:
            self._join_held()

    def finish(self) -> None:
        """Count the rows whose values occur more than once, then delete the temporary files.

        The number is in ``repeated_rows``, and a few of these rows are in ``examples``.
        """
        try:
            for part in self._parts():
                is_repeated = pc.greater(part.column(_COUNT), 1)
                repeated = part.filter(is_repeated)
                self.repeated_rows += pc.sum(repeated.column(_COUNT)).as_py() or 0
                missing = MOST_EXAMPLES - len(self.examples)
                self.examples += example_texts(repeated, self._columns, missing)
        finally:
            self._spill.clear()

    def discard(self) -> None:
        """Delete the temporary files without counting."""
        self._spill.clear()

    @property
    def _limit(self) -> int:
        """The number of bytes to hold in memory.

        The limit grows with the number of temporary files, so that fewer files are added, because
        ``finish`` opens all of them at the same time.
        """
        return min(_FIRST_BYTES << (len(self._spill) // _FILES_OF_ONE_SIZE), self._most_bytes)

    def _hold(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._held_bytes += rows.nbytes

    def _take_held(self) -> pa.Table:
        held, self._held, self._held_bytes = self._held, [], 0
        return self._joined(pa.concat_tables(held))

    def _join_held(self) -> None:
        """Replace the rows in memory by their distinct values.

        If these are too large, write them to temporary files.
        """
        rows = self._take_held()
        if rows.nbytes < self._limit // 2:
            self._hold(rows)
        else:
            self._put_away(rows)

    def _put_away(self, rows: pa.Table) -> None:
        columns = [rows.column(name).combine_chunks() for name in self._names]
        places = (row_hashes(columns)[:, 0] % _PARTS).astype(np.uint8)
        order = np.argsort(places, kind="stable")
        present, starts = np.unique(places[order], return_index=True)
        by_part = zip(present.tolist(), np.split(order, starts[1:]), strict=True)
        self._spill.add(
            rows.schema, ((part, rows.take(pa.array(places))) for part, places in by_part)
        )

    def _parts(self) -> Iterator[pa.Table]:
        """Yield tables that together have every distinct value once, with its count."""
        if self._held and not len(self._spill):
            yield self._take_held()
            return
        if self._held:
            self._put_away(self._take_held())
        with self._spill.opened() as spilled:
            for part in self._spill.places():
                batches = [batch for run in spilled.runs(part) for batch in run]
                yield self._joined(pa.Table.from_batches(batches))

    def _joined(self, rows: pa.Table) -> pa.Table:
        """Return each distinct value of ``rows`` once, with the sum of its counts."""
        if rows.num_rows < 2:
            return rows
        words = chain.from_iterable(column_words(rows.column(name)) for name in self._names)
        groups = sort_by_words(words, rows.num_rows)
        counts = rows.column(_COUNT).to_numpy()
        sums = np.add.reduceat(counts[groups.order], groups.starts)
        found = rows.select(self._names).take(pa.array(groups.oldest))
        return found.append_column(_COUNT, pa.array(sums))
