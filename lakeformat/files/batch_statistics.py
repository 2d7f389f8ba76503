# SPDX-License-Identifier: Apache-2.0
"""Computes statistics of columns from the written rows; the libraries that write ORC and Avro files
return none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.column_statistics import ColumnStatistics, bounded_by, merge_bounds
from lakeformat.types.types import DataField, DataType
from lakeformat.types.values import Value, values_from_arrow

__all__ = ["BatchStatistics", "column_bounds"]

Bounds = tuple[Value, Value]


def column_bounds(values: pa.ChunkedArray, data_type: DataType) -> Bounds | None:
    """Return minimum and maximum; None if a value is NaN. At least one value must not be null."""
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None
    ends = pc.min_max(values)
    found = values_from_arrow(pa.array([ends["min"], ends["max"]], values.type), data_type)
    return found[0], found[1]


class BatchStatistics:
    """Collects exact statistics of the columns of a file."""

    def __init__(self, fields: Sequence[DataField], bounded: Iterable[bool]) -> None:
        """Prepare statistics of ``fields``; ``bounded`` is True for each field whose minimum and
        maximum are needed.
        """
        self._fields = fields
        self._bounded = list(bounded)
        self._nulls = [0] * len(fields)
        self._bounds: list[list[Bounds | None]] = [[] for _ in fields]

    def add(self, rows: pa.Table) -> None:
        """Add rows that have exactly the columns of the file."""
        for number, (column, field) in enumerate(zip(rows.columns, self._fields, strict=True)):
            self._nulls[number] += column.null_count
            if self._bounded[number] and column.null_count < len(column):
                self._bounds[number].append(column_bounds(column, field.type))

    def result(self) -> list[ColumnStatistics]:
        """Return the statistics of all rows, one for each field."""
        return [
            bounded_by(merge_bounds(bounds), nulls)
            for bounds, nulls in zip(self._bounds, self._nulls, strict=True)
        ]
