# SPDX-License-Identifier: Apache-2.0
"""The aggregate function ``sum``: adds values, and subtracts retracted values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.number_states import NumberState, Step, again
from lakeformat.paimon.merge.functions.numbers import (
    LONG,
    Arithmetic,
    Numbers,
    arithmetic_of,
    from_halves,
    from_numbers,
    range_of,
    to_numbers,
    wide_halves,
)
from lakeformat.paimon.merge.functions.segments import combined, present
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["SumFunction"]


@dataclass(frozen=True, slots=True)
class SumFunction:
    """Returns the sum of the values that are not null."""

    name: str
    column: str
    keeps_single: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return self._state(values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        return self._reduced(values, groups, None)

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        # Subtracting from null gives the negative number, so a retract is an add of the negative.
        return self._reduced(values, groups, retracts)

    def _reduced(self, values: Column, groups: KeyGroups, retracts: Mask | None) -> pa.Array:
        flat = combined(values)
        keys, rows = present(flat, groups)
        found = np.zeros(len(groups), bool)
        found[keys] = True
        match arithmetic_of(flat.type):
            case Arithmetic.FLOAT:
                numbers = to_numbers(flat)
                # reduceat would add in pairs, which changes sums of doubles. Adding -0.0 changes no
                # number.
                sums = np.full(len(groups), -0.0, numbers.dtype)
                with np.errstate(all="ignore"):
                    np.add.at(sums, keys, _signed(numbers[rows], rows, retracts))
                return from_numbers(sums, found, flat.type)
            case Arithmetic.WIDE_DECIMAL:
                limit = range_of(flat.type).high
                lows, highs, largest = _wide_sums(flat, keys, rows, len(groups), retracts)
                result = from_halves(lows, highs, found, flat.type)
            case kind:
                is_decimal = kind is Arithmetic.LONG_DECIMAL
                limit = LONG.high if is_decimal else range_of(flat.type).high
                numbers = _signed(to_numbers(flat)[rows], rows, retracts)
                sums = np.zeros(len(groups), np.int64)
                np.add.at(sums, keys, numbers)
                largest = _largest_prefixes(numbers, keys, groups, limit)
                sums[largest >= limit * (1 - SLACK)] = 0  # computed again below
                result = from_numbers(sums, found, flat.type)
        doubtful = np.flatnonzero(largest >= limit * (1 - SLACK))
        if not len(doubtful):
            return result
        return again(self._state(flat, len(doubtful)), groups, doubtful, result, retracts)

    def _state(self, values: Column, keys: int) -> _Sum:
        return _Sum(self.name, self.column, values, keys)


_PIECE = 0xFFFFFFFF
SLACK = 1e-9
"""The relative safety margin for bounds computed in doubles, far larger than their rounding errors.
"""


def _signed(numbers: Numbers, rows: Positions, retracts: Mask | None) -> Numbers:
    return numbers if retracts is None else np.where(retracts[rows], -numbers, numbers)


def _largest_prefixes(numbers: Numbers, keys: Positions, groups: KeyGroups, limit: int) -> Numbers:
    """Return, for each key, an upper bound for the magnitudes of all of its partial sums."""
    furthest = max(-float(numbers.min(initial=0)), float(numbers.max(initial=0)))
    bounds = groups.sizes * furthest
    if bounds.max(initial=0) < limit * (1 - SLACK):
        return bounds
    prefixes = np.zeros(len(groups))
    np.add.at(prefixes, keys, np.abs(numbers.astype(np.float64)))
    return prefixes


def _wide_sums(
    flat: pa.Array, keys: Positions, rows: Positions, count: int, retracts: Mask | None
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the low and high 64 bits of each key's sum, and an upper bound for its magnitude.

    Each number is split into four parts of 32 bits, and each part is summed in 64 bits. This is
    enough for 2^31 numbers.
    """
    lows, highs = wide_halves(flat)
    lows, highs = lows[rows], highs[rows]
    mask = np.uint64(_PIECE)
    pieces = (
        (lows & mask).astype(np.int64),
        (lows >> np.uint64(32)).astype(np.int64),
        highs & _PIECE,
        highs >> 32,
    )
    carry = np.zeros(count, np.int64)
    halves: list[Numbers] = []
    for piece in pieces:
        sums = carry.copy()
        np.add.at(sums, keys, _signed(piece, rows, retracts))
        halves.append(sums & _PIECE)
        carry = sums >> 32
    lows_of_sums = halves[0] | halves[1] << 32
    highs_of_sums = halves[2] | halves[3] << 32
    magnitudes = np.zeros(count)
    np.add.at(magnitudes, keys, np.abs(highs.astype(np.float64) * 2.0**64 + lows))
    return lows_of_sums, highs_of_sums, magnitudes


class _Sum(NumberState):
    noun = "sum"

    def __init__(self, function: str, column: str, values: Column, keys: int) -> None:
        super().__init__(function, column, values, keys)
        # A short decimal has 64 bits, and Java lets it wrap around.
        self.refuses |= self.arithmetic is Arithmetic.LONG_DECIMAL

    def combine(self, state: Numbers, incoming: Numbers) -> Step:
        with np.errstate(all="ignore"):  # opposite infinities give NaN, a valid result
            sums = state + incoming
        if self.arithmetic is Arithmetic.FLOAT:
            return self.all_fit(sums)
        if self.is_long:
            return Step(sums, ((state ^ sums) & (incoming ^ sums)) >= 0)
        return self.in_range(sums)

    def take_back(self, state: Numbers, incoming: Numbers) -> Step:
        with np.errstate(all="ignore"):
            rest = state - incoming
        if self.arithmetic is Arithmetic.FLOAT:
            return self.all_fit(rest)
        if self.is_long:
            return Step(rest, ((state ^ incoming) & (state ^ rest)) >= 0)
        return self.in_range(rest)

    def take_from_null(self, incoming: Numbers) -> Step:
        if self.arithmetic in (Arithmetic.INTEGER, Arithmetic.LONG_DECIMAL):
            low = LONG.low if self.is_long else self.range.low
            return Step(-incoming, incoming != low)
        return self.all_fit(-incoming)
