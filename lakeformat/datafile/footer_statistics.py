"""Statistics of columns from Parquet footers: the writer has collected them already."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.arrow_types import to_arrow_type
from lakeformat.binary_row import Value
from lakeformat.datafile.batch_statistics import column_bounds, has_order
from lakeformat.datafile.column_statistics import (
    NO_STATISTICS,
    ColumnStatistics,
    bounded_by,
    merge_bounds,
)
from lakeformat.datafile.statistics_modes import Detail, StatisticsMode
from lakeformat.types import AtomicType, DataField, DataType, TypeName

__all__ = ["FooterStatistics"]

Bounds = tuple[Value, Value]

WIDEST_IN_FOOTER = 4096
"""Bytes of a bound beyond which Arrow leaves both out of the footer."""

_UNIT_NANOS = {"ms": 1_000_000, "us": 1_000}
_MICROS_DIGITS = 6


class FooterStatistics:
    """Knows of a file what its footer does not say: where NaN and very long values are."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatisticsMode]) -> None:
        self._fields = fields
        self._bounded = [mode.detail is Detail.BOUNDS for mode in modes]
        self._leaves = [_count_leaves(to_arrow_type(field.type)) for field in fields]
        self._has_nan: set[int] = set()
        self._wide: dict[tuple[int, int], Bounds | None] = {}
        self._groups = 0

    def add(self, rows: pa.Table) -> None:
        """Look at the rows of the next row group, with exactly the columns."""
        for number, (column, field) in enumerate(zip(rows.columns, self._fields, strict=True)):
            if not self._bounded[number]:
                continue
            if pa.types.is_floating(column.type):
                if pc.any(pc.is_nan(column)).as_py():
                    self._has_nan.add(number)
            elif _may_be_wide(column) and column.null_count < len(column):
                self._wide[self._groups, number] = column_bounds(column, field.type)
        self._groups += 1

    def result(self, metadata: pq.FileMetaData) -> list[ColumnStatistics]:
        """Exact statistics of each column of the finished file; nested ones have none."""
        found, leaf = [], 0
        for number, (field, leaves) in enumerate(zip(self._fields, self._leaves, strict=True)):
            is_nested = pa.types.is_nested(to_arrow_type(field.type))
            found.append(NO_STATISTICS if is_nested else self._column(metadata, number, leaf))
            leaf += leaves
        return found

    def _column(self, metadata: pq.FileMetaData, number: int, leaf: int) -> ColumnStatistics:
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
        if not self._bounded[number] or number in self._has_nan or not _is_kept(data_type):
            return ColumnStatistics(null_count=nulls)
        return bounded_by(merge_bounds(parts), nulls)


def _may_be_wide(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is not None and longest > WIDEST_IN_FOOTER


def _is_kept(data_type: DataType) -> bool:
    """Java finds no bounds of the timestamps it writes as INT96, and nobody expects them."""
    if not isinstance(data_type, AtomicType) or not has_order(data_type):
        return False
    is_timestamp = data_type.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
    return not is_timestamp or data_type.precision <= _MICROS_DIGITS


def _value(raw: Value, data_type: DataType) -> Value:
    """A number or bytes of a footer as a value of the column."""
    assert isinstance(data_type, AtomicType)
    name = data_type.name
    if name in (TypeName.CHAR, TypeName.VARCHAR):
        return raw.decode()
    if name is TypeName.DECIMAL:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        sign, digits, _ = Decimal(unscaled).as_tuple()
        return Decimal((sign, digits, -data_type.scale))
    if name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        unit = to_arrow_type(data_type).unit
        return raw * _UNIT_NANOS.get(unit, 1)
    return raw


def _count_leaves(arrow_type: pa.DataType) -> int:
    """How many columns of a Parquet file one column of a table takes."""
    if pa.types.is_struct(arrow_type):
        return sum(_count_leaves(part.type) for part in arrow_type)
    if pa.types.is_map(arrow_type):
        return _count_leaves(arrow_type.key_type) + _count_leaves(arrow_type.item_type)
    if pa.types.is_list(arrow_type):
        return _count_leaves(arrow_type.value_type)
    return 1
