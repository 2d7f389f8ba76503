# SPDX-License-Identifier: Apache-2.0
"""Casts between dates, times, timestamps and numbers; the local time zone is always UTC."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts.floor_division import floor_divide
from lakeformat.types.casts.rules import TIMESTAMPS
from lakeformat.types.types import AtomicType, TypeName

__all__ = ["cast_temporal", "from_units", "to_units"]

T = TypeName
MILLIS_PER_DAY = 86_400_000
MILLIS_PER_SECOND = 1_000
MILLIS_DIGITS = 3
_UNITS_PER_MILLI = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def cast_temporal(array: pa.Array, stored: AtomicType, wanted: AtomicType) -> pa.Array | None:
    """Cast between dates, times, timestamps and numbers; None if Java has no such cast."""
    source, target = stored.name, wanted.name
    if target in TIMESTAMPS:
        return _to_timestamp(array, stored, wanted)
    if source not in TIMESTAMPS:
        return None
    millis = floor_divide(array.view(pa.int64()), _UNITS_PER_MILLI[array.type.unit])
    if target is T.DATE:
        return floor_divide(millis, MILLIS_PER_DAY).cast(pa.int32()).cast(pa.date32())
    if target is T.TIME:
        days = pc.multiply(floor_divide(millis, MILLIS_PER_DAY), MILLIS_PER_DAY)
        return pc.subtract(millis, days).cast(pa.int32()).cast(pa.time32("ms"))
    if target in (T.INT, T.BIGINT):
        seconds = pc.divide(millis, MILLIS_PER_SECOND)
        return seconds.cast(to_arrow_type(wanted), safe=False)
    return None


def from_units(counts: pa.Array, per_milli_from: int, wanted: pa.DataType) -> pa.Array:
    """Convert counts of a time unit since 1970 to timestamps of the type ``wanted``, rounded down.

    ``per_milli_from`` is the number of these units in a millisecond. Raise ``ArrowInvalid`` for a
    time that the type cannot store.
    """
    per_milli = _UNITS_PER_MILLI[wanted.unit]
    if per_milli >= per_milli_from:
        counts = pc.multiply_checked(counts, per_milli // per_milli_from)
    else:
        counts = floor_divide(counts, per_milli_from // per_milli)
    return counts.view(wanted)


def to_units(precision: int, unit: str) -> int:
    """Return the number of Arrow units (``ms``, ``us`` or ``ns``) in the smallest step of a
    precision, such as 100 for precision 4 in ``us``.
    """
    digits = {"ms": 3, "us": 6, "ns": 9}[unit]
    return int(10 ** max(digits - precision, 0))


def _to_timestamp(array: pa.Array, stored: AtomicType, wanted: AtomicType) -> pa.Array | None:
    target = to_arrow_type(wanted)
    if stored.name in TIMESTAMPS:
        return _timestamp_to_timestamp(array, stored, wanted, target)
    if stored.name is T.DATE:
        millis = pc.multiply(array.cast(pa.int32()).cast(pa.int64()), MILLIS_PER_DAY)
        return from_units(millis, 1, target)
    if stored.name is T.TIME:
        return from_units(array.cast(pa.int32()).cast(pa.int64()), 1, target)
    if stored.name in (T.INT, T.BIGINT):
        millis = pc.multiply_checked(array.cast(pa.int64()), MILLIS_PER_SECOND)
        return from_units(millis, 1, target)
    return None


def _timestamp_to_timestamp(
    array: pa.Array, stored: AtomicType, wanted: AtomicType, target: pa.DataType
) -> pa.Array:
    counts = array.view(pa.int64())
    per_milli = _UNITS_PER_MILLI[array.type.unit]
    if wanted.precision < stored.precision:
        counts, per_milli = _truncate(counts, per_milli, wanted.precision, array.type.unit)
    return from_units(counts, per_milli, target)


def _truncate(counts: pa.Array, per_milli: int, precision: int, unit: str) -> tuple[pa.Array, int]:
    """Truncate ``counts`` to a precision. Return the new counts, and the number of their units in a
    millisecond. ``per_milli`` is the number of units of the old counts in a millisecond.

    As in Java, counts are rounded down. For a precision below 3 there are two steps: the counts are
    rounded down to milliseconds, and these are rounded to the precision, towards 1970.
    """
    if precision <= MILLIS_DIGITS:
        counts, per_milli = floor_divide(counts, per_milli), 1
        step = 10 ** (MILLIS_DIGITS - precision)
        return pc.multiply(pc.divide(counts, step), step), per_milli
    step = to_units(precision, unit)
    return pc.multiply(floor_divide(counts, step), step), per_milli
