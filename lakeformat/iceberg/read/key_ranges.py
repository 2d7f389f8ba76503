# SPDX-License-Identifier: Apache-2.0
"""Ranges of values in the key columns of files: an equality delete without a common value does
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from lakeformat.iceberg.read.file_pruning import ColumnStatistics
from lakeformat.iceberg.read.single_values import bounds_of
from lakeformat.iceberg.types import Field, PrimitiveType

__all__ = ["KeyRange", "KeyRanges", "ranges_of"]

_UNBOUNDED = ("float", "double")
"""Types with NaN, which equals NaN as a key but is outside of the bounds of a column."""


class KeyRange(NamedTuple):
    """The values of one column of one file; None where something is not known."""

    lower: Any
    upper: Any
    has_nulls: bool
    has_values: bool


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """The ranges of the key columns of one file, by their ids."""

    by_id: dict[int, KeyRange]

    def only(self, ids: Collection[int]) -> KeyRanges:
        """Return the ranges of the columns ``ids``."""
        return KeyRanges({each: found for each, found in self.by_id.items() if each in ids})

    def may_meet(self, rows: KeyRanges) -> bool:
        """Return False if the ranges of any key column have no value in common with those of
        ``rows``.
        """
        return all(
            each not in rows.by_id or _may_meet(found, rows.by_id[each])
            for each, found in self.by_id.items()
        )


def ranges_of(files: ColumnStatistics, fields: Sequence[Field]) -> list[KeyRanges]:
    """Return the ranges of the columns ``fields`` for each file."""
    columns = {each.id: _column(files, each) for each in fields}
    return [
        KeyRanges({field_id: ranges[row] for field_id, ranges in columns.items()})
        for row in range(len(files))
    ]


def _may_meet(key: KeyRange, row: KeyRange) -> bool:
    if key.has_nulls and row.has_nulls:
        return True
    if not (key.has_values and row.has_values):
        return False
    is_below = key.upper is not None and row.lower is not None and key.upper < row.lower
    is_above = key.lower is not None and row.upper is not None and key.lower > row.upper
    return not (is_below or is_above)


def _column(files: ColumnStatistics, field: Field) -> list[KeyRange]:
    count = len(files)
    lower: list[Any] = [None] * count
    upper = lower
    if isinstance(field.type, PrimitiveType) and field.type.name not in _UNBOUNDED:
        least, most = (files.statistic(name, field.id) for name in ("lower_bounds", "upper_bounds"))
        lower, upper = map(_ordered, bounds_of(least, most, field.type))
    nulls = files.statistic("null_value_counts", field.id).to_pylist()
    rows = files.record_count.to_pylist()
    return [
        KeyRange(least, most, has_nulls=null != 0, has_values=null is None or null != total)
        for least, most, null, total in zip(lower, upper, nulls, rows, strict=True)
    ]


def _ordered(values: pa.Array) -> list[Any]:
    """Return Python values that compare like the column."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return list(values.to_pylist())
