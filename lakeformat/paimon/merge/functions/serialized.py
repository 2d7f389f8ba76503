# SPDX-License-Identifier: Apache-2.0
"""Functions that unite values stored as bytes: bitmaps and sketches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import (
    REMOVE_STORED,
    Accumulator,
    Column,
    RefusedRow,
)
from lakeformat.paimon.merge.functions.segments import combined, take_or_null
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["SerializedFunction"]


@dataclass(frozen=True, slots=True)
class SerializedFunction:
    """The union of bitmaps or sketches; a key with a single value keeps its bytes unchanged."""

    name: str
    column: str
    union: Callable[[Sequence[bytes]], bytes]
    """Returns the union of two or more serialized values; raises ValueError if one is damaged."""
    keeps_single: bool = True
    swaps_late: bool = False

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        present = np.asarray(flat.is_valid())[groups.order]
        order = groups.order[present]
        counts = np.bincount(groups.key_of[present], minlength=len(groups))
        ends = np.cumsum(counts)
        places = np.full(len(groups), -1, np.int64)
        some = np.flatnonzero(counts)
        places[some] = order[ends[some] - counts[some]]
        several = np.flatnonzero(counts > 1)
        places[several] = len(flat) + np.arange(len(several))
        # A loop over keys, because the libraries join the objects of one key per call.
        unions = [
            self._union_of(flat, order[ends[key] - counts[key] : ends[key]]) for key in several
        ]
        both = pa.concat_arrays([flat, pa.array(unions, flat.type)])
        return take_or_null(both, places)

    def _union_of(self, flat: pa.Array, rows: Positions) -> bytes:
        try:
            return self.union(flat.take(pa.array(rows)).to_pylist())
        except ValueError as reason:
            raise RefusedRow(
                f"column {self.column!r} has bytes that the aggregate function {self.name!r} "
                f"cannot read: {reason}. Correct the row. {REMOVE_STORED}",
                int(rows[-1]),
            ) from None
