# SPDX-License-Identifier: Apache-2.0
"""Running sums and products: one number for each key, and a mask of the keys that are not null."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import REMOVE_STORED, Column, RefusedRow
from lakeformat.paimon.merge.functions.numbers import (
    Arithmetic,
    Numbers,
    arithmetic_of,
    from_numbers,
    range_of,
    to_numbers,
)
from lakeformat.paimon.merge.functions.segments import combined, is_valid, of_keys, ranks_of
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["NumberState", "Step", "again", "has_value"]


@dataclass(frozen=True, slots=True)
class Step:
    """The results of one arithmetic operation, applied to several states at once."""

    numbers: Numbers
    fits: Mask
    """True where the number can be stored; elsewhere the value becomes null or is refused."""


class NumberState(ABC):
    """The state of a function that combines two numbers and ignores nulls."""

    noun: ClassVar[str]
    """The word for the result in error messages, such as ``sum``."""

    def __init__(self, function: str, column: str, values: Column, keys: int) -> None:
        flat = combined(values)
        self._function, self._column, self._type = function, column, flat.type
        self._numbers = to_numbers(flat)
        self._valid = is_valid(flat)
        self.arithmetic = arithmetic_of(flat.type)
        self.range = range_of(flat.type)
        is_bigint = self.arithmetic is Arithmetic.INTEGER and flat.type.bit_width == 64
        self.is_long = is_bigint or self.arithmetic is Arithmetic.LONG_DECIMAL
        """True if the numbers have 64 bits, so that their arithmetic in 64 bits can overflow."""
        self.refuses = self.arithmetic is Arithmetic.INTEGER
        """True if a number that does not fit raises RefusedRow; False if it becomes null."""
        self._state = np.zeros(keys, self._numbers.dtype)
        self._has = np.zeros(keys, bool)

    @abstractmethod
    def combine(self, state: Numbers, incoming: Numbers) -> Step:
        """Combine each state with the incoming number at the same position."""

    @abstractmethod
    def take_back(self, state: Numbers, incoming: Numbers) -> Step:
        """Undo the combination of each state with the incoming number at its position."""

    @abstractmethod
    def take_from_null(self, incoming: Numbers) -> Step | None:
        """Return the states after the numbers ``incoming`` are retracted from NULL states.

        Return None if the states remain NULL.
        """

    def add(self, keys: Positions, rows: Positions) -> None:
        keys, rows = self._with_value(keys, rows)
        has = self._has[keys]
        if has.all():
            self._put(keys, rows, self.combine(self._state[keys], self._numbers[rows]))
            return
        fresh = keys[~has]
        self._state[fresh] = self._numbers[rows[~has]]
        self._has[fresh] = True
        keys, rows = keys[has], rows[has]
        self._put(keys, rows, self.combine(self._state[keys], self._numbers[rows]))

    # Addition and multiplication do not depend on which operand is older.
    add_late = add

    def retract(self, keys: Positions, rows: Positions) -> None:
        keys, rows = self._with_value(keys, rows)
        has = self._has[keys]
        fresh, held = (keys[~has], rows[~has]), (keys[has], rows[has])
        self._put(*held, self.take_back(self._state[held[0]], self._numbers[held[1]]))
        step = self.take_from_null(self._numbers[fresh[1]])
        if step is not None:
            self._put(*fresh, step)

    def reset(self, keys: Positions, rows: Positions) -> None:
        self._state[keys] = self._numbers[rows]
        self._has[keys] = True if self._valid is None else self._valid[rows]

    def clear(self, keys: Positions) -> None:
        self._has[keys] = False

    def result(self) -> pa.Array:
        return from_numbers(self._state, self._has, self._type)

    def all_fit(self, numbers: Numbers) -> Step:
        return Step(numbers, np.ones(len(numbers), bool))

    def in_range(self, numbers: Numbers) -> Step:
        return Step(numbers, (numbers >= self.range.low) & (numbers <= self.range.high))

    def _with_value(self, keys: Positions, rows: Positions) -> tuple[Positions, Positions]:
        if self._valid is None:
            return keys, rows
        valid = self._valid[rows]
        return keys[valid], rows[valid]

    def _put(self, keys: Positions, rows: Positions, step: Step) -> None:
        fits = step.fits
        if not fits.all():
            if self.refuses:
                raise RefusedRow(
                    f"column {self._column!r}: the {self.noun} does not fit {self._type}; give "
                    f"the column a wider type, or correct the row. {REMOVE_STORED}",
                    int(rows[np.flatnonzero(~fits)[0]]),
                )
            self._has[keys[~fits]] = False
            keys = keys[fits]
            self._state[keys], self._has[keys] = step.numbers[fits], True
            return
        self._state[keys], self._has[keys] = step.numbers, True


def has_value(valid: Mask | None, groups: KeyGroups) -> Mask:
    """Return a mask of the keys that have at least one non-null value."""
    found = np.ones(len(groups), bool)
    if valid is not None:
        found[:] = False
        found[groups.key_of[valid[groups.order]]] = True
    return found


def again(
    state: NumberState,
    groups: KeyGroups,
    keys: Positions,
    result: pa.Array,
    retracts: Mask | None = None,
) -> pa.Array:
    """Return ``result``, but with the values of ``keys`` computed again, row by row.

    ``state`` must be new, with one state for each of ``keys``. The mask ``retracts`` marks the rows
    that are subtracted; None if all rows are added.
    """
    if not len(keys):
        return result
    for numbers, rows in ranks_of(of_keys(groups, keys)):
        if retracts is None:
            state.add(numbers, rows)
            continue
        taken = retracts[rows]
        state.add(numbers[~taken], rows[~taken])
        state.retract(numbers[taken], rows[taken])
    places = np.arange(len(groups))
    places[keys] = len(groups) + np.arange(len(keys))
    return pa.concat_arrays([result, state.result()]).take(pa.array(places))
