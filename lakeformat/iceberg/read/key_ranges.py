# SPDX-License-Identifier: Apache-2.0
"""Compares ranges of key columns of equality deletes and data files.

An equality delete applies to no row of a data file if the two ranges of keys have no value in
common.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lakeformat.iceberg.read.entry_columns import plain_values
from lakeformat.iceberg.read.file_pruning import ColumnStatistics
from lakeformat.iceberg.read.single_values import bounds_of
from lakeformat.iceberg.types import Field, PrimitiveType

__all__ = ["KeyRange", "KeyRanges", "ranges_of"]

_UNBOUNDED = ("float", "double")
"""Types whose bounds are not used, because bounds leave out NaN and a key may be NaN."""


class KeyRange(NamedTuple):
    """The range of one column in one file; a bound is None if it is unknown."""

    lower: Any
    upper: Any
    has_nulls: bool
    has_values: bool


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """The ranges of the key columns of one file, by field id."""

    by_id: dict[int, KeyRange]

    def only(self, ids: Collection[int]) -> KeyRanges:
        """Return the ranges of the columns in ``ids``."""
        return KeyRanges({each: found for each, found in self.by_id.items() if each in ids})

    def may_meet(self, rows: KeyRanges) -> bool:
        """Return False if no key of these ranges can be in ``rows``.

        That is the case if the two ranges of at least one key column have no value in common.
        """
        return all(
            each not in rows.by_id or _may_meet(found, rows.by_id[each])
            for each, found in self.by_id.items()
        )


def ranges_of(files: ColumnStatistics, fields: Sequence[Field]) -> list[KeyRanges]:
    """Return the ranges of the given columns for each file."""
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
        lower, upper = map(plain_values, bounds_of(least, most, field.type))
    nulls = files.statistic("null_value_counts", field.id).to_pylist()
    rows = files.record_count.to_pylist()
    return [
        KeyRange(least, most, has_nulls=null != 0, has_values=null is None or null != total)
        for least, most, null, total in zip(lower, upper, nulls, rows, strict=True)
    ]
