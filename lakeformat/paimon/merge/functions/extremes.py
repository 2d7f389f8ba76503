# SPDX-License-Identifier: Apache-2.0
"""``max`` and ``min``, also under the names ``bool_or`` and ``bool_and`` for booleans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.key_order import orderable
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.positions import NULL, PositionState
from lakeformat.paimon.merge.functions.segments import combined, present, raw_numbers, take_or_null
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["ExtremeFunction", "sort_words"]

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ExtremeFunction:
    """Returns the largest or the smallest value that is not null."""

    name: str
    column: str
    largest: bool
    keeps_single: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return _Extreme(self, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        keys, rows = present(flat, groups)
        plain = _plain_numbers(flat, rows)
        numbers = sort_words(flat)[rows] if plain is None else plain
        choose, worst = (np.maximum, np.min) if self.largest else (np.minimum, np.max)
        best = np.full(len(groups), worst(numbers) if len(numbers) else 0, numbers.dtype)
        choose.at(best, keys, numbers)
        if plain is not None:
            found = np.zeros(len(groups), bool)
            found[keys] = True
            return _from_plain_numbers(best, ~found, flat.type)
        chosen = np.full(len(groups), NULL, np.int64)
        hits = np.flatnonzero(numbers == best[keys])
        chosen[keys[hits]] = rows[hits]
        return take_or_null(flat, chosen)


class _Extreme(PositionState):
    def __init__(self, function: ExtremeFunction, values: Column, keys: int) -> None:
        super().__init__(function.name, function.column, values, keys)
        words = sort_words(self._values)
        self._directed = words if function.largest else ~words

    def add(self, keys: Positions, rows: Positions) -> None:
        present = self._present(rows)
        state = self._state[keys]
        better = (state == NULL) | (self._directed[present] > self._directed[state])
        self._assign(keys, present, (present != NULL) & better)

    add_late = add


def _plain_numbers(values: pa.Array, rows: Positions) -> npt.NDArray[Any] | None:
    """Return the values at ``rows`` as numbers that numpy compares as Java does.

    Return None for types without such numbers, and for floats with NaN or -0.0.
    """
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return raw_numbers(values, f"i{kind.bit_width // 8}")[rows]
    if not pa.types.is_floating(kind):
        return None
    numbers = raw_numbers(values, kind.to_pandas_dtype())[rows]
    negative_zero = (numbers == 0) & np.signbit(numbers)
    return None if np.isnan(numbers).any() or negative_zero.any() else numbers


def _from_plain_numbers(numbers: npt.NDArray[Any], missing: Mask, kind: pa.DataType) -> pa.Array:
    mask = missing if missing.any() else None
    if pa.types.is_floating(kind):
        return pa.array(numbers, kind, mask=mask)
    return pa.array(numbers, _BITS[kind.bit_width], mask=mask).view(kind)


_BITS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def sort_words(values: pa.Array) -> Words:
    """Return whole numbers that sort as the values do; for a null the number is arbitrary."""
    kind = values.type
    if pa.types.is_floating(kind):
        return sort_words(combined(orderable(pa.chunked_array([values]))))
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_decimal(kind) and kind.precision <= 18:
        values = decimal_longs(values)
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    elif not pa.types.is_integer(kind):
        values = _ranks(values)
    if values.null_count:
        values = pc.fill_null(values, 0)
    words: Words = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return words


def decimal_longs(values: pa.Array) -> pa.Array:
    """Return the unscaled values of decimals of at most 18 digits."""
    pairs = np.frombuffer(values.buffers()[1] or b"", np.int64)[2 * values.offset :]
    lows = np.ascontiguousarray(pairs[: 2 * len(values) : 2])
    mask = None if values.null_count == 0 else values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(lows, mask=mask)


def _ranks(values: pa.Array) -> pa.Array:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return pc.rank(values, sort_keys="ascending", tiebreaker="dense").cast(pa.int64())
