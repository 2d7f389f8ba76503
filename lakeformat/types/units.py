# SPDX-License-Identifier: Apache-2.0
"""Converts decimals and timestamps to the integers that binary rows store, and back."""

from __future__ import annotations

from decimal import Context, Decimal

from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION, MAX_NANO_OF_MILLI
from lakeformat.types.types import AtomicType

__all__ = [
    "decimal_from_unscaled",
    "join_timestamp",
    "split_timestamp",
    "timestamp_unit_nanos",
    "unscaled_decimal",
]

NANOS_PER_MILLI = 1_000_000
NANOS_PER_MICRO = 1_000

_LONG_END = 1 << 63

# Enough digits that moving the decimal point never rounds.
_EXACT = Context(prec=80)


def unscaled_decimal(value: Decimal, data_type: AtomicType) -> int:
    """Return the digits of a decimal, at the scale of the type, as an integer.

    Raise ``ValueError`` if the decimal does not fit the type. For a type with a precision of at
    most 18, every integer of 64 bits fits, even if it has more digits than the precision.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a number")
    shift = exponent + data_type.scale
    # Checked before any arithmetic: 1e999999 is a legal Decimal.
    digits_at_most = max(data_type.precision, COMPACT_DECIMAL_PRECISION + 1)
    if len(digits) + shift > digits_at_most and any(digits):
        raise ValueError(f"{value} has more digits than the type")
    number = int("".join(map(str, digits)))
    if shift < 0:
        number, rest = divmod(number, 10 ** min(-shift, len(digits)))
        if rest:
            raise ValueError(f"{value} has more digits after the point than the type")
    elif number:
        number *= 10**shift
    return _checked(-number if sign else number, data_type)


def decimal_from_unscaled(unscaled: int, data_type: AtomicType) -> Decimal:
    """Return the decimal with the digits ``unscaled`` and the scale of the type.

    Raise ``ValueError`` if it does not fit the type, as ``unscaled_decimal`` does.
    """
    return Decimal(_checked(unscaled, data_type)).scaleb(-data_type.scale, _EXACT)


def timestamp_unit_nanos(data_type: AtomicType) -> int:
    """Return the length, in nanoseconds, of the unit in which a timestamp type counts: a milli-,
    micro- or nanosecond.
    """
    if data_type.precision <= 3:
        return NANOS_PER_MILLI
    return NANOS_PER_MICRO if data_type.precision <= 6 else 1


def split_timestamp(nanos: int, data_type: AtomicType) -> tuple[int, int]:
    """Return the milliseconds since 1970, rounded down, and the remaining nanoseconds from 0 to
    999999.

    Raise ``ValueError`` for nanoseconds that the type cannot store.
    """
    if rest := nanos % timestamp_unit_nanos(data_type):
        raise ValueError(f"{nanos} ns since 1970 has {rest} ns that the type cannot store")
    return divmod(nanos, NANOS_PER_MILLI)


def join_timestamp(millis: int, nano_of_milli: int, data_type: AtomicType) -> int:
    """Return nanoseconds since 1970, rounded down to the unit of the type.

    Some writers store finer digits than the type has.
    Raise ``ValueError`` if ``nano_of_milli`` is not from 0 to 999999.
    """
    if not 0 <= nano_of_milli <= MAX_NANO_OF_MILLI:
        raise ValueError(f"nanoseconds of a millisecond must be 0 to 999999, got {nano_of_milli}")
    nanos = millis * NANOS_PER_MILLI + nano_of_milli
    return nanos - nanos % timestamp_unit_nanos(data_type)


def _checked(unscaled: int, data_type: AtomicType) -> int:
    if data_type.precision <= COMPACT_DECIMAL_PRECISION:
        fits = -_LONG_END <= unscaled < _LONG_END
    else:
        fits = abs(unscaled) < 10**data_type.precision
    if not fits:
        raise ValueError(f"the number with the digits {unscaled} has more digits than the type")
    return unscaled
