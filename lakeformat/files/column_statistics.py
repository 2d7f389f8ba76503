# SPDX-License-Identifier: Apache-2.0
"""Minimum, maximum and null count of a column, and their reduction by table options."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import overload

from lakeformat.types.types import AtomicType, DataType, TypeName
from lakeformat.types.values import Value

__all__ = [
    "NO_STATISTICS",
    "ColumnStatistics",
    "Detail",
    "StatisticsMode",
    "bounded_by",
    "cut_upwards",
    "has_order",
    "merge_bounds",
    "reduce_statistics",
]

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column.

    A bound is None if it is unknown, or if all values are null. A null count is None if it is
    unknown. ``types/values.py`` lists the Python type of the bounds for each column type. Bounds of
    strings and bytes may be cut: then the minimum may be below, and the maximum above, all values.
    """

    minimum: Value = None
    maximum: Value = None
    null_count: int | None = None

    @property
    def is_none(self) -> bool:
        """True if neither the bounds nor the null count are known."""
        return self.minimum is None and self.maximum is None and self.null_count is None


NO_STATISTICS = ColumnStatistics()


def bounded_by(bounds: tuple[Value, Value] | None, null_count: int) -> ColumnStatistics:
    """Return statistics with this null count and these bounds.

    ``bounds=None`` means that the bounds are unknown, or that all values are null.
    """
    minimum, maximum = bounds or (None, None)
    return ColumnStatistics(minimum, maximum, null_count)


def merge_bounds(bounds: Iterable[tuple[Value, Value] | None]) -> tuple[Value, Value] | None:
    """Return the least minimum and the greatest maximum of several parts of a column.

    The caller leaves out parts without values. Return None if there is no part, if the bounds
    of a part are unknown (None), or if a bound is NaN: readers disagree on the order of NaN. A
    minimum of zero becomes -0.0 and a maximum of zero becomes 0.0, so that the bounds include both
    zeros.
    """
    lowest: Value = None
    highest: Value = None
    for part in bounds:
        if part is None or any(isinstance(end, float) and math.isnan(end) for end in part):
            return None
        minimum, maximum = part
        lowest = minimum if lowest is None else min(lowest, minimum)
        highest = maximum if highest is None else max(highest, maximum)
    if isinstance(lowest, float):
        lowest = -0.0 if lowest == 0 else lowest
        highest = 0.0 if highest == 0 else highest
    return None if lowest is None else (lowest, highest)


def reduce_statistics(exact: ColumnStatistics, mode: StatisticsMode) -> ColumnStatistics:
    """Return the parts of exact statistics that ``mode`` keeps.

    Bounds of texts and bytes are cut to ``mode.length``. If ``cut_upwards`` returns None for
    the maximum, both bounds are left out.
    """
    if mode.detail is Detail.NONE:
        return NO_STATISTICS
    if mode.detail is Detail.COUNTS:
        return ColumnStatistics(null_count=exact.null_count)
    if mode.length is None or not isinstance(exact.maximum, str | bytes):
        return exact
    highest = cut_upwards(exact.maximum, mode.length)
    if highest is None:  # with one bound alone, readers would think that all values are null
        return ColumnStatistics(null_count=exact.null_count)
    return ColumnStatistics(exact.minimum[: mode.length], highest, exact.null_count)


@overload
def cut_upwards(value: str, length: int) -> str | None: ...
@overload
def cut_upwards(value: bytes, length: int) -> bytes | None: ...
@overload
def cut_upwards(value: str | bytes, length: int) -> str | bytes | None: ...
def cut_upwards(value: str | bytes, length: int) -> str | bytes | None:
    """Return an upper bound of at most ``length`` characters or bytes.

    A ``value`` of at most ``length`` is its own bound. A longer value is cut to ``length``, and
    characters or bytes with the highest value are removed from its end. Then the last one left is
    raised by one. Return None if all have the highest value.
    """
    if len(value) <= length:
        return value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _next_text(text: str) -> str | None:
    for place in range(len(text) - 1, -1, -1):
        following = ord(text[place]) + 1
        # Java stops at a surrogate, which is not valid text; then the next character is the bound.
        following = _SURROGATES.stop if following in _SURROGATES else following
        if following <= _LAST_CODE_POINT:
            return text[:place] + chr(following)
    return None


def _next_bytes(content: bytes) -> bytes | None:
    kept = content.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


class Detail(Enum):
    """The parts of the statistics that are kept; each member includes the members before it."""

    NONE = 0
    COUNTS = 1
    BOUNDS = 2


@dataclass(frozen=True, slots=True)
class StatisticsMode:
    """The statistics that a table option keeps for one column.

    Bounds of strings and bytes are cut to ``length``; with None they are not cut.
    """

    detail: Detail
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> StatisticsMode:
        """Parse a valid mode, such as ``truncate(16)``; the mode is not checked here."""
        plain = {"none": Detail.NONE, "counts": Detail.COUNTS, "full": Detail.BOUNDS}
        if text in plain:
            return cls(plain[text])
        return cls(Detail.BOUNDS, int(text.removeprefix("truncate(").removesuffix(")")))


_WITHOUT_ORDER = {TypeName.VARIANT, TypeName.BLOB, TypeName.GEOMETRY, TypeName.GEOGRAPHY}


def has_order(data_type: DataType) -> bool:
    """Return True if values of the type have a minimum and a maximum."""
    return isinstance(data_type, AtomicType) and data_type.name not in _WITHOUT_ORDER
