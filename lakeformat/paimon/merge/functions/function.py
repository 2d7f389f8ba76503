# SPDX-License-Identifier: Apache-2.0
"""The interfaces of an aggregate function and of the running state of one column."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = [
    "REMOVE_STORED",
    "Accumulator",
    "AggregateFunction",
    "Column",
    "ReducesChanges",
    "RefusedRow",
]

REMOVE_STORED = "To remove a stored row, roll the table back to a snapshot without this row"
"""The advice for a stored row that cannot be merged.

A DELETE does not help, because it must be merged with this row.
"""

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


class RefusedRow(InvalidRequestError):
    """Raised if a function cannot apply a row; the engine adds the row's primary key to the
    message.
    """

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        """The position of the row in the column."""

    def __reduce__(self) -> tuple[type[RefusedRow], tuple[str, int]]:
        return type(self), (self.reason, self.row)


class Accumulator(Protocol):
    """The state of one column for all keys of a merge; every state begins as NULL.

    The argument ``keys`` of the methods has key numbers, each at most once. ``rows`` has one row
    for each of these keys, as a position in the column.
    """

    def add(self, keys: Positions, rows: Positions) -> None:
        """Add to the state of each key the value of its row, which is newer than the state."""
        ...

    def add_late(self, keys: Positions, rows: Positions) -> None:
        """Add to the state of each key the value of its row, which is older than the state.

        Most functions put the value in front of the state. As in Java, some, such as ``collect``,
        add it as if the row were newer.
        """
        ...

    def retract(self, keys: Positions, rows: Positions) -> None:
        """Subtract the value of each row from the state of its key; raise RefusedRow if that is
        impossible.
        """
        ...

    def reset(self, keys: Positions, rows: Positions) -> None:
        """Set the state of each key to the value of its row.

        All else that a function remembers is kept: ``first_value`` remembers that a key has had a
        row.
        """
        ...

    def clear(self, keys: Positions) -> None:
        """Set the state of each key to NULL; all else that a function remembers is kept."""
        ...

    def result(self) -> pa.Array:
        """Return the state of every key, which is the aggregated value."""
        ...


class AggregateFunction(Protocol):
    """Combines the values that one column has in all rows of a key into one value."""

    @property
    def name(self) -> str:
        """The name of the function, as users write it in options."""
        ...

    @property
    def keeps_single(self) -> bool:
        """True if ``reduce`` returns the value of a key with a single row unchanged."""
        ...

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        """Return a state of the column ``values`` for ``keys`` keys; each begins as NULL."""
        ...

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        """Return one value per key.

        The aggregation of a key begins with NULL, and adds the rows of the key in merge order. A
        retract is allowed only as the single row of a key.
        """
        ...


@runtime_checkable
class ReducesChanges(Protocol):
    """A function that reduces keys with retracts all at once, without a step per row."""

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        """Return one value per key as ``reduce`` does, but subtract the rows in ``retracts``.

        The mask ``retracts`` is in the order of ``values``. Every key has at least one row.
        """
        ...
