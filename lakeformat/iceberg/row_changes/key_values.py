# SPDX-License-Identifier: Apache-2.0
"""The values of a key column as a condition, which skips files and row groups without them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.conditions.predicate import And, Compare, IsIn, IsNull, Not, Predicate
from lakeformat.rows.prune import Op

__all__ = ["KeyValues"]

_TIME = PrimitiveType("time")
"""Conditions compare times by milliseconds only."""
_MOST_LISTED = 100
"""The most values of a key column that are compared with the bounds of files one by one."""


class KeyValues:
    """Collects the values of a key column: all while they are few, then only their bounds."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._values: pa.Array | None = None
        self._is_listed = True

    def add(self, column: pa.Array) -> None:
        """Collect the values of rows; none is null."""
        found = column.unique()
        if self._values is not None:
            found = pa.concat_arrays([self._values, found]).unique()
        self._is_listed &= len(found) <= _MOST_LISTED
        if not self._is_listed:
            ends = pc.min_max(found)
            found = pa.array([ends["min"], ends["max"]], found.type)
        self._values = found

    def condition(self) -> Predicate:
        """Return the condition that each value meets: it is listed, or within the bounds."""
        name, values = self._field.name, self._values
        if self._field.type == _TIME:
            return Not(IsNull(name))
        if values is None or self._is_listed:
            return IsIn(name, () if values is None else tuple(values))
        least, most = values
        return And((Compare(name, Op.GREATER_EQUAL, least), Compare(name, Op.LESS_EQUAL, most)))
