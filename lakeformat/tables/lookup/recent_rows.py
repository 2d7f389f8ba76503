# SPDX-License-Identifier: Apache-2.0
"""The rows that were looked up last, in bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ID", "RecentRows", "rows_by_id"]

ID = "__lookup_id"
"""The column with the 16 bytes that identify the key of a row."""

_MOST_CHUNKS = 64


def rows_by_id(rows: pa.Table, wanted: pa.Array) -> tuple[pa.Table, pa.Array]:
    """Return the rows with the wanted ids, and the wanted ids that have no row."""
    if not rows.num_rows or not len(wanted):
        return rows.slice(0, 0), wanted
    places = pc.index_in(wanted, value_set=rows.column(ID))
    return rows.take(places.drop_null()), wanted.filter(pc.is_null(places))


class RecentRows:
    """A cache of rows in two generations, similar to LRU.

    Each generation holds at most half of ``max_rows`` and half of ``max_bytes``.

    A row that is found in the older generation is copied to the younger one. When the younger one
    is full, it replaces the older one, so rows that were not used meanwhile are forgotten.
    """

    def __init__(self, schema: pa.Schema, *, max_rows: int, max_bytes: int) -> None:
        self._most_rows = max(max_rows // 2, 1)
        self._most_bytes = max_bytes // 2
        self._empty = schema.empty_table()
        self._young = self._old = self._empty

    @property
    def num_rows(self) -> int:
        """The number of rows in memory; a row in both generations counts twice."""
        return int(self._young.num_rows + self._old.num_rows)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows in memory; a row in both generations counts twice."""
        return int(self._young.nbytes + self._old.nbytes)

    def clear(self) -> None:
        """Forget all rows."""
        self._young = self._old = self._empty

    def take(self, wanted: pa.Array) -> tuple[pa.Table, pa.Array]:
        """Return the rows with these ids, and the ids that have no row here."""
        young, others = rows_by_id(self._young, wanted)
        old, missing = rows_by_id(self._old, others)
        self.add(old)
        return pa.concat_tables([young, old]), missing

    def add(self, rows: pa.Table) -> None:
        """Keep the rows; if a generation cannot hold all of them, keep only the first ones."""
        if not rows.num_rows:
            return
        rows = self._fitting(rows)
        both = pa.concat_tables([self._young, rows])
        if both.num_rows > self._most_rows or both.nbytes > self._most_bytes:
            self._old, self._young = self._young, rows
        elif both.column(ID).num_chunks > _MOST_CHUNKS:
            self._young = both.combine_chunks()
        else:
            self._young = both

    def _fitting(self, rows: pa.Table) -> pa.Table:
        part = rows.slice(0, self._most_rows)
        while part.nbytes > self._most_bytes:
            part = part.slice(0, part.num_rows // 2)
        if part.num_rows == rows.num_rows:
            return rows
        # A copy, because a slice keeps the memory of all rows.
        return rows.take(pa.array(np.arange(part.num_rows)))
