"""What an aggregate function is, and the running state of one column that it keeps."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["Accumulator", "AggregateFunction", "Column", "ReducesChanges", "RefusedRow"]

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


class RefusedRow(InvalidRequestError):
    """A function cannot take a row into its state; the engine says which key it belongs to."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        """Its position in the column."""


class Accumulator(Protocol):
    """The state of one column for all keys of a merge; every state begins as NULL.

    ``keys`` are numbers of keys, each at most once in a call; ``rows`` are as many positions in
    the column, the row of each key.
    """

    def add(self, keys: Positions, rows: Positions) -> None:
        """The row is newer than the state."""
        ...

    def add_late(self, keys: Positions, rows: Positions) -> None:
        """The row is older than the state: the function with its operands swapped."""
        ...

    def retract(self, keys: Positions, rows: Positions) -> None:
        """Take the row's value back; an error if the function cannot."""
        ...

    def reset(self, keys: Positions, rows: Positions) -> None:
        """The state becomes the row's value; what the function remembers beside it stays."""
        ...

    def clear(self, keys: Positions) -> None:
        """The state becomes NULL; what the function remembers beside it stays."""
        ...

    def result(self) -> pa.Array:
        """The state of every key."""
        ...


class AggregateFunction(Protocol):
    """How the values of one column and one key become one, with its options."""

    @property
    def name(self) -> str:
        """As users write it."""
        ...

    @property
    def keeps_single(self) -> bool:
        """Whether one value alone comes out of ``reduce`` as it is, whatever it is."""
        ...

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        """A state for each of so many keys."""
        ...

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        """Every row of every key added in merge order, from NULL; one value per key."""
        ...


@runtime_checkable
class ReducesChanges(Protocol):
    """A function that needs no rounds for retracts either."""

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        """As ``reduce``, but the rows marked are taken back; none of the keys is without rows."""
        ...
