# SPDX-License-Identifier: Apache-2.0
"""The aggregate function ``product``: multiplies values, and divides by retracted values."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import (
    REMOVE_STORED,
    Accumulator,
    Column,
    RefusedRow,
)
from lakeformat.paimon.merge.functions.number_states import NumberState, Step, again
from lakeformat.paimon.merge.functions.numbers import (
    Arithmetic,
    Numbers,
    arithmetic_of,
    from_numbers,
    range_of,
    to_numbers,
)
from lakeformat.paimon.merge.functions.segments import combined, present
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["ProductFunction"]

_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class ProductFunction:
    """Returns the product of the values that are not null."""

    name: str
    column: str
    keeps_single: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return self._state(values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        if arithmetic_of(flat.type) in (Arithmetic.LONG_DECIMAL, Arithmetic.WIDE_DECIMAL):
            # Each step rounds, so the order of multiplications matters.
            everything, none = np.arange(len(groups)), pa.nulls(len(groups), flat.type)
            return again(self._state(flat, len(groups)), groups, everything, none)
        keys, rows = present(flat, groups)
        found = np.zeros(len(groups), bool)
        found[keys] = True
        numbers = to_numbers(flat)[rows]
        products = np.ones(len(groups), numbers.dtype)
        with np.errstate(all="ignore"):
            np.multiply.at(products, keys, numbers)
        result = from_numbers(products, found, flat.type)
        if arithmetic_of(flat.type) is Arithmetic.FLOAT:
            return result
        with np.errstate(all="ignore"):
            # Zeros count as ones: an overflow before a zero is still an overflow.
            largest = np.ones(len(groups))
            np.multiply.at(largest, keys, np.maximum(np.abs(numbers.astype(np.float64)), 1.0))
        doubtful = np.flatnonzero(largest >= range_of(flat.type).high * (1 - _SLACK))
        return again(self._state(flat, len(doubtful)), groups, doubtful, result)

    def _state(self, values: Column, keys: int) -> _Product:
        return _Product(self.name, self.column, values, keys)


class _Product(NumberState):
    noun = "product"

    def __init__(self, function: str, column: str, values: Column, keys: int) -> None:
        super().__init__(function, column, values, keys)
        self._scale = self._type.scale if self.arithmetic not in _UNSCALED else 0

    def combine(self, state: Numbers, incoming: Numbers) -> Step:
        if self.arithmetic is Arithmetic.FLOAT:
            with np.errstate(all="ignore"):
                return self.all_fit(state * incoming)
        if self.arithmetic is Arithmetic.INTEGER and not self.is_long:
            return self.in_range(state * incoming)
        exact = state.astype(object) * incoming.astype(object)
        if self.arithmetic is not Arithmetic.INTEGER:
            exact = _half_up(exact, np.full(len(exact), 10**self._scale, object))
        return self._narrow(exact)

    def take_back(self, state: Numbers, incoming: Numbers) -> Step:
        if self.arithmetic is Arithmetic.FLOAT:
            with np.errstate(all="ignore"):
                return self.all_fit(state / incoming)
        exact, divisor = state.astype(object), incoming.astype(object)
        if self.arithmetic is not Arithmetic.INTEGER:
            return self._narrow(_half_up(exact * 10**self._scale, divisor))
        quotients = np.abs(exact) // np.abs(divisor)
        return self._narrow(np.where((exact < 0) != (divisor < 0), -quotients, quotients))

    def take_from_null(self, incoming: Numbers) -> None:
        return None

    def retract(self, keys: Positions, rows: Positions) -> None:
        with_value, of_rows = self._with_value(keys, rows)
        if self.arithmetic is not Arithmetic.FLOAT:
            held = self._has[with_value]
            self._check_divisible(self._state[with_value[held]], of_rows[held])
        super().retract(keys, rows)

    def _check_divisible(self, states: Numbers, rows: Positions) -> None:
        divisors = self._numbers[rows]
        wrong = divisors == 0
        if self.arithmetic is not Arithmetic.INTEGER:
            wrong |= np.array(
                [not _terminates(int(a), int(b)) for a, b in zip(states, divisors, strict=True)],
                dtype=bool,
            )
        if wrong.any():
            first = np.flatnonzero(wrong)[0]
            why = "the quotient has infinitely many digits" if divisors[first] else "the value is 0"
            raise RefusedRow(
                f"column {self._column!r}: the product cannot be divided by the value of a delete "
                f"or update-before, because {why}; set "
                f"'fields.{self._column}.ignore-retract' to 'true', or correct the row. "
                f"{REMOVE_STORED}",
                int(rows[first]),
            )

    def _narrow(self, exact: Numbers) -> Step:
        """Return the numbers ``exact`` with a mask of those that fit the column's type.

        Each number that does not fit is replaced by 0.
        """
        fits = self.in_range(exact).fits
        return Step(np.where(fits, exact, 0).astype(self._state.dtype), fits)


_UNSCALED = (Arithmetic.INTEGER, Arithmetic.FLOAT)


def _half_up(numbers: Numbers, divisors: Numbers) -> Numbers:
    """Return the quotients as whole numbers; halves are rounded away from zero."""
    sizes = np.abs(divisors)
    rounded = (2 * np.abs(numbers) + sizes) // (2 * sizes)
    signed: Numbers = np.where((numbers < 0) != (divisors < 0), -rounded, rounded)
    return signed


def _terminates(number: int, divisor: int) -> bool:
    """Return True if ``number / divisor`` has finitely many decimal digits."""
    if divisor == 0:
        return False
    rest = abs(divisor) // gcd(number, divisor)
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
