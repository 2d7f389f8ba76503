# SPDX-License-Identifier: Apache-2.0
"""The buffer of rows that a writer holds in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.write.assign import Places
from lakeformat.rows.repeated_values import in_full_columns
from lakeformat.rows.row_kinds import Kinds

__all__ = ["BufferedRows", "RowBuffer"]


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """Rows in the order of arrival, each with its kind and the place number of its bucket."""

    rows: pa.Table
    kinds: Kinds
    places: Places


class RowBuffer:
    """Collects the rows of all buckets of one writer without copying them."""

    def __init__(self) -> None:
        self._rows: list[pa.RecordBatch] = []
        self._kinds: list[Kinds] = []
        self._places: list[Places] = []
        self.nbytes = 0

    def add(self, rows: pa.RecordBatch, kinds: Kinds, places: Places) -> None:
        """Add a batch."""
        self._rows.append(rows)
        self._kinds.append(kinds)
        self._places.append(places)
        self.nbytes += rows.nbytes + kinds.nbytes + places.nbytes

    def take(self) -> BufferedRows | None:
        """Return all rows, and empty the buffer; None if it has no rows."""
        if not self._rows:
            return None
        held = BufferedRows(
            _as_one(self._rows).combine_chunks(),
            np.concatenate(self._kinds),
            np.concatenate(self._places),
        )
        self.clear()
        return held

    def clear(self) -> None:
        """Drop all rows."""
        self._rows, self._kinds, self._places, self.nbytes = [], [], [], 0


def _as_one(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return batches as one table; if their schemas differ, dictionaries and 64-bit decimals are
    decoded.
    """
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    tables = (in_full_columns(pa.Table.from_batches([batch])) for batch in batches)
    return pa.concat_tables(tables)
