"""Rows a writer holds in memory, as they came in, until there is something to do with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.write.assign import Places
from lakeformat.paimon.write.repeated_values import in_full_columns
from lakeformat.paimon.write.row_kinds import Kinds

__all__ = ["BufferedRows", "RowBuffer"]


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """Rows of any number of places, in the order they came in."""

    rows: pa.Table
    kinds: Kinds
    places: Places


class RowBuffer:
    """Collects rows of all buckets of one writer; nothing is copied."""

    def __init__(self) -> None:
        self._rows: list[pa.RecordBatch] = []
        self._kinds: list[Kinds] = []
        self._places: list[Places] = []
        self.nbytes = 0

    def add(self, rows: pa.RecordBatch, kinds: Kinds, places: Places) -> None:
        """Hold one batch more."""
        self._rows.append(rows)
        self._kinds.append(kinds)
        self._places.append(places)
        self.nbytes += rows.nbytes + kinds.nbytes + places.nbytes

    def take(self) -> BufferedRows | None:
        """All rows, which are no longer held then; None if there are none."""
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
        """Forget all rows."""
        self._rows, self._kinds, self._places, self.nbytes = [], [], [], 0


def _as_one(batches: list[pa.RecordBatch]) -> pa.Table:
    """Batches that differ at most in which of their texts and decimals are numbers."""
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches)
    tables = (in_full_columns(pa.Table.from_batches([batch])) for batch in batches)
    return pa.concat_tables(tables)
