"""``sum``, and what takes it back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.merge.functions.function import Accumulator, Column
from lakeformat.merge.functions.number_states import NumberState, Step, again
from lakeformat.merge.functions.numbers import (
    Arithmetic,
    Numbers,
    arithmetic_of,
    from_numbers,
    range_of,
    to_numbers,
    wide_halves,
)
from lakeformat.merge.functions.segments import combined, present
from lakeformat.merge.groups import KeyGroups, Mask, Positions

__all__ = ["SumFunction"]


@dataclass(frozen=True, slots=True)
class SumFunction:
    """The sum of the values that are not null."""

    name: str
    column: str
    keeps_single: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return self._state(values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        return self._reduced(values, groups, None)

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        # To take a number back from null leaves its negative: retracts are adds of negatives.
        return self._reduced(values, groups, retracts)

    def _reduced(self, values: Column, groups: KeyGroups, retracts: Mask | None) -> pa.Array:
        flat = combined(values)
        keys, rows = present(flat, groups)
        found = np.zeros(len(groups), bool)
        found[keys] = True
        match arithmetic_of(flat.type):
            case Arithmetic.FLOAT:
                numbers = to_numbers(flat)
                # Not reduceat, which adds in pairs: in doubles the order of additions shows.
                # And -0.0 is what changes no number it is added to.
                sums = np.full(len(groups), -0.0, numbers.dtype)
                with np.errstate(all="ignore"):
                    np.add.at(sums, keys, _signed(numbers[rows], rows, retracts))
                return from_numbers(sums, found, flat.type)
            case Arithmetic.WIDE_DECIMAL:
                sums, largest = _wide_sums(flat, keys, rows, len(groups), retracts)
            case _:
                numbers = _signed(to_numbers(flat)[rows], rows, retracts)
                sums = np.zeros(len(groups), np.int64)
                np.add.at(sums, keys, numbers)
                if arithmetic_of(flat.type) is Arithmetic.LONG_DECIMAL:
                    return from_numbers(sums, found, flat.type)
                largest = _largest_prefixes(numbers, keys, groups, range_of(flat.type).high)
        doubtful = np.flatnonzero(largest >= range_of(flat.type).high * (1 - SLACK))
        sums[doubtful] = 0  # made anew below
        result = from_numbers(sums, found, flat.type)
        return again(self._state(flat, len(doubtful)), groups, doubtful, result, retracts)

    def _state(self, values: Column, keys: int) -> _Sum:
        return _Sum(self.name, self.column, values, keys)


SLACK = 1e-9
"""Sums of magnitudes are made in doubles, whose error stays far below."""


def _signed(numbers: Numbers, rows: Positions, retracts: Mask | None) -> Numbers:
    return numbers if retracts is None else np.where(retracts[rows], -numbers, numbers)


def _largest_prefixes(numbers: Numbers, keys: Positions, groups: KeyGroups, limit: int) -> Numbers:
    """No prefix of a key is further from zero."""
    furthest = max(-float(numbers.min(initial=0)), float(numbers.max(initial=0)))
    bounds = groups.sizes * furthest
    if bounds.max(initial=0) < limit * (1 - SLACK):
        return bounds
    prefixes = np.zeros(len(groups))
    np.add.at(prefixes, keys, np.abs(numbers.astype(np.float64)))
    return prefixes


def _wide_sums(
    flat: pa.Array, keys: Positions, rows: Positions, count: int, retracts: Mask | None
) -> tuple[Numbers, Numbers]:
    """Sums of 128-bit numbers, made of four sums of 32-bit pieces, and how large they got."""
    lows, highs = wide_halves(flat)
    lows, highs = lows[rows], highs[rows]
    mask = np.uint64(0xFFFFFFFF)
    pieces = (
        (lows & mask).astype(np.int64),
        (lows >> np.uint64(32)).astype(np.int64),
        highs & 0xFFFFFFFF,
        highs >> 32,
    )
    sums = np.zeros(count, object)
    for place, piece in enumerate(pieces):
        of_piece = np.zeros(count, np.int64)
        np.add.at(of_piece, keys, _signed(piece, rows, retracts))
        sums += of_piece.astype(object) << (32 * place)
    magnitudes = np.zeros(count)
    np.add.at(magnitudes, keys, np.abs(highs.astype(np.float64) * 2.0**64 + lows))
    return sums, magnitudes


class _Sum(NumberState):
    """A running sum."""

    noun = "sum"

    def combine(self, state: Numbers, incoming: Numbers) -> Step:
        with np.errstate(all="ignore"):  # infinities that meet are no number, which is an answer
            sums = state + incoming
        if self.arithmetic in (Arithmetic.FLOAT, Arithmetic.LONG_DECIMAL):
            return self.all_fit(sums)
        if self.is_long:
            return Step(sums, ((state ^ sums) & (incoming ^ sums)) >= 0)
        return self.in_range(sums)

    def take_back(self, state: Numbers, incoming: Numbers) -> Step:
        with np.errstate(all="ignore"):
            rest = state - incoming
        if self.arithmetic in (Arithmetic.FLOAT, Arithmetic.LONG_DECIMAL):
            return self.all_fit(rest)
        if self.is_long:
            return Step(rest, ((state ^ incoming) & (state ^ rest)) >= 0)
        return self.in_range(rest)

    def take_from_null(self, incoming: Numbers) -> Step:
        if self.arithmetic is Arithmetic.INTEGER:
            return Step(-incoming, incoming != self.range.low)
        return self.all_fit(-incoming)
