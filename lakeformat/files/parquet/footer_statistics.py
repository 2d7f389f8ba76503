# SPDX-License-Identifier: Apache-2.0
"""Reads the statistics of columns from the footer that the writer of a Parquet file returns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.files.batch_statistics import column_bounds
from lakeformat.files.column_statistics import (
    NO_STATISTICS,
    ColumnStatistics,
    Detail,
    StatisticsMode,
    bounded_by,
    has_order,
    merge_bounds,
)
from lakeformat.files.parquet.int96_arrays import leaf_columns
from lakeformat.types.arrow_types import to_arrow_schema, to_arrow_type
from lakeformat.types.types import AtomicType, DataField, DataType, TypeName
from lakeformat.types.values import Value

__all__ = ["WIDEST_IN_FOOTER", "FooterStatistics"]

Bounds = tuple[Value, Value]

WIDEST_IN_FOOTER = 4096
"""The largest size of a bound in bytes: Arrow leaves both bounds out if one is larger."""

_TIMESTAMPS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
_UNIT_NANOS = {"ms": 1_000_000, "us": 1_000}
_MICROS_DIGITS = 6


class FooterStatistics:
    """Collects the statistics that a footer lacks: for NaN, for very long values and for INT96."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatisticsMode]) -> None:
        self._fields = fields
        self._bounded = [mode.detail is Detail.BOUNDS for mode in modes]
        self._leaves = [len(list(leaf_columns(to_arrow_schema((field,))))) for field in fields]
        self._int96_nulls = {n: 0 for n, field in enumerate(fields) if _is_int96(field.type)}
        self._has_nan: set[int] = set()
        self._wide: dict[tuple[int, int], Bounds | None] = {}
        self._groups = 0

    def add(self, rows: pa.Table) -> None:
        """Examine the rows of the next row group, which have exactly the columns of the file."""
        for number in self._int96_nulls:
            self._int96_nulls[number] += rows.column(number).null_count
        for number, (column, field) in enumerate(zip(rows.columns, self._fields, strict=True)):
            if not self._bounded[number]:
                continue
            if pa.types.is_floating(column.type):
                if pc.any(pc.is_nan(column)).as_py():
                    self._has_nan.add(number)
            elif _may_be_wide(column) and column.null_count < len(column):
                self._wide[self._groups, number] = column_bounds(_decoded(column), field.type)
        self._groups += 1

    def result(self, metadata: pq.FileMetaData) -> list[ColumnStatistics]:
        """Return exact statistics of each column of the finished file.

        The statistics of nested columns are unknown.
        """
        found, leaf = [], 0
        for number, (field, leaves) in enumerate(zip(self._fields, self._leaves, strict=True)):
            is_nested = pa.types.is_nested(to_arrow_type(field.type))
            found.append(NO_STATISTICS if is_nested else self._column(metadata, number, leaf))
            leaf += leaves
        return found

    def _column(self, metadata: pq.FileMetaData, number: int, leaf: int) -> ColumnStatistics:
        if number in self._int96_nulls:
            # Java writes no bounds of timestamps as INT96, and readers expect none.
            return ColumnStatistics(null_count=self._int96_nulls[number])
        data_type, nulls = self._fields[number].type, 0
        parts: list[Bounds | None] = []
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(leaf).statistics
            if statistics is None or not statistics.has_null_count:
                return NO_STATISTICS
            nulls += statistics.null_count
            if statistics.has_min_max:
                ends = (statistics.min_raw, statistics.max_raw)
                parts.append((_value(ends[0], data_type), _value(ends[1], data_type)))
            elif statistics.num_values:
                parts.append(self._wide.get((group, number)))
        if not self._bounded[number] or number in self._has_nan or not has_order(data_type):
            return ColumnStatistics(null_count=nulls)
        return bounded_by(merge_bounds(parts), nulls)


def _may_be_wide(column: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        return any(_may_be_wide(pa.chunked_array([c.dictionary])) for c in column.chunks)
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is not None and longest > WIDEST_IN_FOOTER


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _is_int96(data_type: DataType) -> bool:
    if not isinstance(data_type, AtomicType) or data_type.name not in _TIMESTAMPS:
        return False
    return data_type.precision > _MICROS_DIGITS


def _value(raw: Value, data_type: DataType) -> Value:
    """Return a bound as a Python value of the column's type; ``raw`` is the bound in a footer."""
    assert isinstance(data_type, AtomicType)
    name = data_type.name
    if name in (TypeName.CHAR, TypeName.VARCHAR):
        return raw.decode()
    if name is TypeName.DECIMAL:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        sign, digits, _ = Decimal(unscaled).as_tuple()
        return Decimal((sign, digits, -data_type.scale))
    if name in _TIMESTAMPS:
        return raw * _UNIT_NANOS[to_arrow_type(data_type).unit]
    return raw
