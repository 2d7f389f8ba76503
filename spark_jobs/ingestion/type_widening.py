# SPDX-License-Identifier: Apache-2.0
"""Finds a type that holds every value of two types unchanged."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.types.types import AtomicType, DataType, TypeName, atomic, with_nullability

__all__ = ["INTEGERS", "MOST_DIGITS", "narrowest_integer", "widest"]

T = TypeName
INTEGERS = (T.TINYINT, T.SMALLINT, T.INT, T.BIGINT)
"""The types of whole numbers, the narrowest first."""
MOST_DIGITS = 38
"""The largest precision of a DECIMAL."""
_BITS = (7, 15, 31, 63)
_DIGITS = {T.TINYINT: 3, T.SMALLINT: 5, T.INT: 10, T.BIGINT: 19}
_SAME_KIND = ({T.CHAR, T.VARCHAR}, {T.BINARY, T.VARBINARY})


def widest(one: DataType, other: DataType) -> DataType | None:
    """Return the narrowest type that holds the values of both types; None if there is none.

    There is none for types of different kinds (such as INT and DOUBLE), for decimals that together
    need too many digits, and for two different nested types.
    """
    one = with_nullability(one, nullable=True)
    other = with_nullability(other, nullable=True)
    if one == other:
        return one
    if not isinstance(one, AtomicType) or not isinstance(other, AtomicType):
        return None
    return _widest(one, other)


def narrowest_integer(least: int, most: int) -> AtomicType:
    """Return the narrowest integer type for whole numbers from ``least`` to ``most``; BIGINT if
    even that is too narrow.
    """
    fits = (b for b in _BITS if -(1 << b) <= least and most < 1 << b)
    return atomic(INTEGERS[_BITS.index(next(fits, _BITS[-1]))])


def _widest(one: AtomicType, other: AtomicType) -> AtomicType | None:
    names = {one.name, other.name}
    if names <= {*INTEGERS}:
        return max(one, other, key=lambda each: INTEGERS.index(each.name))
    if names <= {T.DECIMAL, *INTEGERS}:
        return _decimal(one, other)
    if names == {T.FLOAT, T.DOUBLE}:
        return atomic(T.DOUBLE)
    if any(names <= kind for kind in _SAME_KIND):
        length = max(one.length, other.length)
        variable = T.VARCHAR if T.CHAR in names or T.VARCHAR in names else T.VARBINARY
        name = one.name if len(names) == 1 else variable
        return replace(one, name=name, parameters=(length,))
    if names == {T.TIME, T.TIME_MICROS}:
        return atomic(T.TIME_MICROS)
    if len(names) == 1 and one.name in (T.TIMESTAMP, T.TIMESTAMP_LTZ, T.TIME):
        return max(one, other, key=lambda each: each.precision)
    return None


def _decimal(one: AtomicType, other: AtomicType) -> AtomicType | None:
    whole = max(_whole_digits(one), _whole_digits(other))
    scale = max(_scale(one), _scale(other))
    return atomic(T.DECIMAL, whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def _whole_digits(type: AtomicType) -> int:
    return _DIGITS[type.name] if type.name in _DIGITS else type.precision - type.scale


def _scale(type: AtomicType) -> int:
    return 0 if type.name in _DIGITS else type.scale
