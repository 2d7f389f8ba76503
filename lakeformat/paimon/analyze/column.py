# SPDX-License-Identifier: Apache-2.0
"""The statistics of one column, counted as Spark's ANALYZE does.

The length of a text is its number of characters, the length of a binary value its number of bytes.
A null has length 0. Texts and binary values have no least and greatest value. Every other type has
a fixed length, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.analyze.distinct import DistinctCount
from lakeformat.paimon.metadata.statistics import ColumnStatistics
from lakeformat.types.types import AtomicType, DataField, DataType, TypeName
from lakeformat.types.value_text import cast_text, internal_text

__all__ = ["ColumnSummary", "can_be_analyzed"]

_FIXED_BYTES = {
    TypeName.BOOLEAN: 1,
    TypeName.TINYINT: 1,
    TypeName.SMALLINT: 2,
    TypeName.INT: 4,
    TypeName.BIGINT: 8,
    TypeName.FLOAT: 4,
    TypeName.DOUBLE: 8,
    TypeName.DATE: 4,
    TypeName.TIME: 4,
    TypeName.TIMESTAMP: 8,
    TypeName.TIMESTAMP_LTZ: 8,
}
_TEXTS = (TypeName.CHAR, TypeName.VARCHAR)
_BYTES = (TypeName.BINARY, TypeName.VARBINARY)
_LONG_DIGITS = 18
_SHORT_DECIMAL_BYTES, _LONG_DECIMAL_BYTES = 8, 16


def can_be_analyzed(data_type: DataType) -> bool:
    """Return True for a type with statistics.

    These are numbers, BOOLEAN, texts, binary values, dates and times.
    """
    return isinstance(data_type, AtomicType) and (
        data_type.name in _FIXED_BYTES
        or data_type.name in (*_TEXTS, *_BYTES)
        or data_type.name is TypeName.DECIMAL
    )


@dataclass(slots=True)
class ColumnSummary:
    """Collects the statistics of one column, batch by batch."""

    column: DataField
    _rows: int = 0
    _nulls: int = 0
    _total_length: int = 0
    _longest: int = 0
    _bounds: pa.Array | None = None
    _has_nan: bool = False
    _distinct: DistinctCount = field(default_factory=DistinctCount)

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)
        self._nulls += values.null_count
        self._distinct.add(values)
        if self._has_lengths:
            self._add_lengths(values)
        else:
            self._add_bounds(values)

    def result(self) -> ColumnStatistics:
        """Return the statistics of all rows that were added."""
        low, high = self._bound_texts()
        average, longest = self._lengths()
        return ColumnStatistics(
            column_id=self.column.id,
            distinct_count=min(self._distinct.count, self._rows - self._nulls),
            min=low,
            max=high,
            null_count=self._nulls,
            average_length=average,
            max_length=longest,
        )

    @property
    def _type(self) -> AtomicType:
        assert isinstance(self.column.type, AtomicType)
        return self.column.type

    @property
    def _has_lengths(self) -> bool:
        return self._type.name in (*_TEXTS, *_BYTES)

    def _add_lengths(self, values: pa.Array) -> None:
        is_text = self._type.name in _TEXTS
        lengths = pc.utf8_length(values) if is_text else pc.binary_length(values)
        self._total_length += pc.sum(lengths).as_py() or 0
        self._longest = max(self._longest, pc.max(lengths).as_py() or 0)

    def _add_bounds(self, values: pa.Array) -> None:
        known = values.drop_null()
        if pa.types.is_floating(known.type):
            # In Java NaN is greater than any other number.
            is_nan = pc.is_nan(known)
            self._has_nan |= bool(pc.any(is_nan).as_py())
            known = known.filter(pc.invert(is_nan))
        if len(known):
            before = [] if self._bounds is None else [self._bounds]
            found = pc.min_max(pa.concat_arrays([*before, known]))
            self._bounds = pa.array([found["min"], found["max"]], known.type)

    def _bound_texts(self) -> tuple[str | None, str | None]:
        nan = "NaN" if self._has_nan else None
        if self._bounds is None:
            return nan, nan
        low, high = _texts(self._bounds, self._type).to_pylist()
        return low, nan or high

    def _lengths(self) -> tuple[int, int]:
        if self._has_lengths:
            average = -(-self._total_length // self._rows) if self._rows else 0
            return average, self._longest
        if self._type.name is TypeName.DECIMAL:
            is_short = self._type.precision <= _LONG_DIGITS
            size = _SHORT_DECIMAL_BYTES if is_short else _LONG_DECIMAL_BYTES
        else:
            size = _FIXED_BYTES[self._type.name]
        return size, size


def _texts(values: pa.Array, data_type: AtomicType) -> pa.Array:
    """Return the values as texts, in the form of Spark's bounds.

    A TIMESTAMP_LTZ is in UTC. A date is its number of days, and a time its number of milliseconds.
    """
    if data_type.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        local = replace(data_type, name=TypeName.TIMESTAMP)
        return cast_text(values.cast(pa.timestamp(values.type.unit)), local)
    return internal_text(values, data_type)
