# SPDX-License-Identifier: Apache-2.0
"""Rules for changes of a column's type: the allowed casts, and those that keep the order."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.types.types import AtomicType, DataType, TypeName, with_nullability

__all__ = ["CHARACTERS", "INTEGERS", "TIMESTAMPS", "can_cast", "keeps_distinct", "keeps_order"]

T = TypeName
INTEGERS = (T.TINYINT, T.SMALLINT, T.INT, T.BIGINT)
CHARACTERS = frozenset({T.CHAR, T.VARCHAR})
TIMESTAMPS = frozenset({T.TIMESTAMP, T.TIMESTAMP_LTZ})
_BYTES = frozenset({T.BINARY, T.VARBINARY})
_NUMBERS = frozenset({*INTEGERS, T.DECIMAL, T.FLOAT, T.DOUBLE})
_GEOSPATIAL = frozenset({T.GEOMETRY, T.GEOGRAPHY})

_IMPLICIT: dict[TypeName, frozenset[TypeName]] = {
    T.VARCHAR: CHARACTERS,
    T.VARBINARY: _BYTES,
    T.DECIMAL: _NUMBERS,
    T.SMALLINT: frozenset(INTEGERS[:1]),
    T.INT: frozenset(INTEGERS[:2]),
    T.BIGINT: frozenset(INTEGERS[:3]),
    T.FLOAT: frozenset({*INTEGERS, T.DECIMAL}),
    T.DOUBLE: _NUMBERS,
    T.DATE: frozenset({T.TIMESTAMP}),
    T.TIME: frozenset({T.TIMESTAMP}),
    T.TIMESTAMP: TIMESTAMPS,
    T.TIMESTAMP_LTZ: TIMESTAMPS,
}
_TO_NUMBER = frozenset({*_NUMBERS, *CHARACTERS, *TIMESTAMPS, T.BOOLEAN})
_TO_TIMESTAMP = frozenset({T.DATE, T.TIME, *TIMESTAMPS, *CHARACTERS, *_NUMBERS})
_EXPLICIT: dict[TypeName, frozenset[TypeName]] = {
    T.BOOLEAN: frozenset({*CHARACTERS, *INTEGERS}),
    T.BINARY: frozenset({*CHARACTERS, T.VARBINARY}),
    T.VARBINARY: frozenset({*CHARACTERS, T.BINARY}),
    **dict.fromkeys(_NUMBERS, _TO_NUMBER),
    T.DATE: frozenset({*TIMESTAMPS, *CHARACTERS}),
    T.TIME: frozenset({*TIMESTAMPS, *CHARACTERS}),
    **dict.fromkeys(TIMESTAMPS, _TO_TIMESTAMP),
}
_INTEGER_DIGITS = {T.TINYINT: 3, T.SMALLINT: 5, T.INT: 10, T.BIGINT: 19}
_MICROS_DIGITS = 6
_EXACT_DIGITS = {T.FLOAT: 6, T.DOUBLE: 15}
"""The number of decimal digits that each type holds exactly."""
_LONGER = {(T.CHAR, T.VARCHAR), (T.BINARY, T.VARBINARY)}
_PADDED = {T.CHAR, T.BINARY}
"""Types with padded values. More padding can change the order of values or make two equal."""


def can_cast(stored: DataType, wanted: DataType, *, explicit: bool = True) -> bool:
    """Return True if a schema change may change a column from ``stored`` to ``wanted``.

    ``explicit=False`` allows only the casts that Java makes implicitly, and no change to NOT NULL.
    Some implicit casts lose digits or a time of day. Java allows a few casts that it cannot
    compute: they are allowed here as well, but ``cast_array`` raises ``UnsupportedError`` for them.
    """
    if stored.nullable and not wanted.nullable and not explicit:
        return False
    if with_nullability(stored, nullable=True) == with_nullability(wanted, nullable=True):
        return True
    if isinstance(stored, AtomicType) and stored.name in _GEOSPATIAL:
        return False
    if not isinstance(wanted, AtomicType):
        return type(stored) is type(wanted)
    if not isinstance(stored, AtomicType):
        return explicit and wanted.name in CHARACTERS
    if wanted.name in _GEOSPATIAL:
        return False
    if stored.name is wanted.name or stored.name in _IMPLICIT.get(wanted.name, ()):
        return True
    return explicit and (wanted.name in CHARACTERS or stored.name in _EXPLICIT.get(wanted.name, ()))


def keeps_order(stored: DataType, wanted: DataType) -> bool:
    """Return True if a cast keeps the order of values and makes none null, so that min and max
    values remain bounds.
    """
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    if replace(stored, nullable=True) == replace(wanted, nullable=True):
        return True
    source, target = stored.name, wanted.name
    if target is T.DECIMAL:
        return _fits_decimal(stored, wanted)
    if target in TIMESTAMPS:
        # Nanoseconds have a smaller range than coarser units.
        fits = wanted.precision <= _MICROS_DIGITS
        return fits and (source in TIMESTAMPS or source is T.DATE)
    if source in INTEGERS and target in INTEGERS:
        return INTEGERS.index(source) <= INTEGERS.index(target)
    return source in {
        T.DOUBLE: _NUMBERS,
        T.FLOAT: frozenset({*INTEGERS, T.DECIMAL}),
        T.DATE: TIMESTAMPS,
        T.VARCHAR: CHARACTERS,
        T.VARBINARY: _BYTES,
    }.get(target, ())


def keeps_distinct(stored: DataType, wanted: DataType) -> bool:
    """Return True if a cast keeps the order of values, and makes no two values equal.

    The result may be True for a cast to a timestamp in nanoseconds, although not every value fits:
    ``cast_array`` raises an error for a value that is out of range.
    """
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    source, target = stored.name, wanted.name
    if target is T.DECIMAL:
        keeps_scale = source is not T.DECIMAL or wanted.scale >= stored.scale
        return keeps_scale and _fits_decimal(stored, wanted)
    if source is target and target in _PADDED:
        return stored.parameters == wanted.parameters
    if source is target or (source, target) in _LONGER or {source, target} == TIMESTAMPS:
        pairs = zip(stored.parameters, wanted.parameters, strict=True)
        return all(isinstance(new, int) and int(old) <= new for old, new in pairs)
    if target in _EXACT_DIGITS and source in (*INTEGERS, T.DECIMAL):
        digits = _INTEGER_DIGITS.get(source) or stored.precision
        return digits <= _EXACT_DIGITS[target]
    if target in INTEGERS:
        return source is T.BOOLEAN or keeps_order(stored, wanted)
    return (source, target) == (T.FLOAT, T.DOUBLE) or (source is T.DATE and target in TIMESTAMPS)


def _fits_decimal(stored: AtomicType, wanted: AtomicType) -> bool:
    room = wanted.precision - wanted.scale
    if stored.name in _INTEGER_DIGITS:
        return room >= _INTEGER_DIGITS[stored.name]
    if stored.name is not T.DECIMAL:
        return False
    may_carry = wanted.scale < stored.scale
    return room >= stored.precision - stored.scale + may_carry
