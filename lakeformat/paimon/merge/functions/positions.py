# SPDX-License-Identifier: Apache-2.0
"""Functions that choose the value of one row of a key, such as the last or the first value.

Their state is the position of the chosen value in the column; the values are taken once, at the
end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import Accumulator, Column, RefusedRow
from lakeformat.paimon.merge.functions.segments import combined, is_valid, take_or_null
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["NULL", "PositionFunction", "PositionState", "refuse_retract"]

NULL = -1


class PositionState(ABC):
    """The state of each key as the position of a row; subclasses define how a row changes it."""

    def __init__(self, function: str, column: str, values: Column, keys: int) -> None:
        self._function, self._column = function, column
        self._values = combined(values)
        self._valid: Mask | None = is_valid(self._values)
        self._state = np.full(keys, NULL, np.int64)

    def _present(self, rows: Positions) -> Positions:
        return rows if self._valid is None else np.where(self._valid[rows], rows, NULL)

    def _assign(self, keys: Positions, rows: Positions, where: Mask) -> None:
        self._state[keys[where]] = rows[where]

    @abstractmethod
    def add(self, keys: Positions, rows: Positions) -> None: ...

    @abstractmethod
    def add_late(self, keys: Positions, rows: Positions) -> None: ...

    def retract(self, keys: Positions, rows: Positions) -> None:
        refuse_retract(self._function, self._column, rows)

    def reset(self, keys: Positions, rows: Positions) -> None:
        self._state[keys] = self._present(rows)

    def clear(self, keys: Positions) -> None:
        self._state[keys] = NULL

    def result(self) -> pa.Array:
        return take_or_null(self._values, self._state)


def refuse_retract(function: str, column: str, rows: Positions) -> None:
    """Raise RefusedRow for the first of ``rows``: ``function`` cannot subtract a value.

    Do nothing if ``rows`` is empty.
    """
    if len(rows):
        raise RefusedRow(
            f"column {column!r}: the aggregate function {function!r} cannot subtract a value, "
            "which a delete or update-before requires; set "
            f"'fields.{column}.ignore-retract' to 'true' to keep the aggregated value, or use "
            "another function",
            int(rows[0]),
        )


class LastValue(PositionState):
    """The state of ``last_value``: the newest value, which may be null."""

    def add(self, keys: Positions, rows: Positions) -> None:
        self._state[keys] = self._present(rows)

    def add_late(self, keys: Positions, rows: Positions) -> None:
        pass

    def retract(self, keys: Positions, rows: Positions) -> None:
        self._state[keys] = NULL


class LastNonNullValue(PositionState):
    """The state of ``last_non_null_value``: the newest value that is not null."""

    def add(self, keys: Positions, rows: Positions) -> None:
        present = self._present(rows)
        self._assign(keys, present, present != NULL)

    def add_late(self, keys: Positions, rows: Positions) -> None:
        self._assign(keys, self._present(rows), self._state[keys] == NULL)

    def retract(self, keys: Positions, rows: Positions) -> None:
        self._state[keys[self._present(rows) != NULL]] = NULL


class PrimaryKey(PositionState):
    """The state of a primary-key column: the value of the newest row.

    All rows of a key have the same value.
    """

    def add(self, keys: Positions, rows: Positions) -> None:
        self._state[keys] = self._present(rows)

    add_late = add
    retract = add


class FirstValue(PositionState):
    """The state of ``first_value``: the oldest value.

    After the first row, newer rows do not change it.
    """

    def __init__(self, function: str, column: str, values: Column, keys: int) -> None:
        super().__init__(function, column, values, keys)
        self._locked = np.zeros(keys, bool)

    def add(self, keys: Positions, rows: Positions) -> None:
        self._assign(keys, self._present(rows), ~self._locked[keys])
        self._locked[keys] = True

    def add_late(self, keys: Positions, rows: Positions) -> None:
        # The operands are swapped. A locked function returns its accumulator, which is the late
        # value now. A function that is not locked takes its input, which is the state now.
        self._assign(keys, self._present(rows), self._locked[keys])
        self._locked[keys] = True


class FirstNonNullValue(FirstValue):
    """The state of ``first_non_null_value``: the first value that is not null.

    Newer rows then do not change the state. But a late row, which is older, replaces the state by
    its own value, even by null.
    """

    def add(self, keys: Positions, rows: Positions) -> None:
        present = self._present(rows)
        first = ~self._locked[keys] & (present != NULL)
        self._assign(keys, present, first)
        self._locked[keys[first]] = True

    def add_late(self, keys: Positions, rows: Positions) -> None:
        # Swapped: the state is the input now. It is used, and locks, only if the function is not
        # locked.
        stays = ~self._locked[keys] & (self._state[keys] != NULL)
        self._assign(keys, self._present(rows), ~stays)
        self._locked[keys[stays]] = True


Make = Callable[[str, str, Column, int], PositionState]


@dataclass(frozen=True, slots=True)
class PositionFunction:
    """Chooses the first or the last value of each key in merge order.

    Depending on ``name``, it skips nulls.
    """

    name: str
    column: str
    keeps_single: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return _STATES[self.name](self.name, self.column, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        return take_or_null(flat, self._chosen(flat, groups))

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        flat = combined(values)
        if self.name.startswith("first"):
            refuse_retract(self.name, self.column, groups.order[retracts[groups.order]])
        chosen = self._chosen(flat, groups)
        if self.name != "primary-key":
            # Subtracting the value gives null, also from a null state.
            chosen = np.where((chosen != NULL) & retracts[chosen], NULL, chosen)
        return take_or_null(flat, chosen)

    def _chosen(self, values: pa.Array, groups: KeyGroups) -> Positions:
        """Return, for each key, the position of the row that the function chooses; ``NULL`` if
        none.
        """
        valid = is_valid(values) if self.name.endswith("_non_null_value") else None
        if valid is not None:
            return _non_null(valid, groups, self.name)
        return groups.oldest if self.name.startswith("first") else groups.newest


def _non_null(valid: Mask, groups: KeyGroups, name: str) -> Positions:
    """Return, for each key, the position of its last non-null value; ``NULL`` if all are null.

    If ``name`` is ``first_non_null_value``, return the position of the first one instead.
    """
    chosen: npt.NDArray[np.int64] = np.full(len(groups), NULL, np.int64)
    present = np.flatnonzero(valid[groups.order])
    if name == "first_non_null_value":
        present = present[::-1]
    # Of several assignments to one key, numpy keeps the last.
    chosen[groups.key_of[present]] = groups.order[present]
    return chosen


_STATES: dict[str, Make] = {
    "last_value": LastValue,
    "last_non_null_value": LastNonNullValue,
    "first_value": FirstValue,
    "first_non_null_value": FirstNonNullValue,
    "primary-key": PrimaryKey,
}
