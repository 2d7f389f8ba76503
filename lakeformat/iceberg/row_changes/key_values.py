# SPDX-License-Identifier: Apache-2.0
"""Makes a condition from the values of a key column, to skip files and row groups."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.conditions.predicate import And, Compare, IsIn, IsNull, Not, Predicate
from lakeformat.rows.prune import Op

__all__ = ["KeyValues"]

_TIME = PrimitiveType("time")
"""Values of this type are not listed, and have no bounds in the condition."""
_MOST_LISTED = 100
"""With more distinct values, the condition has only their bounds."""


class KeyValues:
    """Collects the distinct values of a key column: all if they are few, else only their bounds."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._values: pa.Array | None = None
        self._is_listed = True

    def add(self, column: pa.Array) -> None:
        """Add the values of a column, which must not have nulls."""
        found = column.unique()
        if self._values is not None:
            found = pa.concat_arrays([self._values, found]).unique()
        self._is_listed &= len(found) <= _MOST_LISTED
        if not self._is_listed:
            ends = pc.min_max(found)
            found = pa.array([ends["min"], ends["max"]], found.type)
        self._values = found

    def condition(self) -> Predicate:
        """Return a condition that every value meets: a list of the values, or their bounds.

        For a column of the type ``time``, the condition is only that the value is not null.
        """
        name, values = self._field.name, self._values
        if self._field.type == _TIME:
            return Not(IsNull(name))
        if values is None or self._is_listed:
            return IsIn(name, () if values is None else tuple(values))
        least, most = values
        return And((Compare(name, Op.GREATER_EQUAL, least), Compare(name, Op.LESS_EQUAL, most)))
