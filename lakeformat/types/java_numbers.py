# SPDX-License-Identifier: Apache-2.0
"""Prints floating-point numbers as Java does, for directory names and casts.

``Double.toString`` and ``Float.toString`` changed in JDK 19. This module prints like JDK 8 to 18,
on which engines run. These JDKs do not always print the fewest digits (``9.999999999999999E22``,
``1.06317277E16``), nor the nearest number. From 10^-3 to 10^7 all JDKs, and Python, print the same.
"""

from __future__ import annotations

import math
import struct

__all__ = ["java_double_text", "java_float_text"]

_PLAIN_FROM, _PLAIN_BELOW = -3, 7
_DOUBLE_BITS, _FLOAT_BITS = 53, 24
_LONG_BITS, _LAST_LONG_EXPONENT = 63, 62


def java_double_text(value: float) -> str:
    """Return a DOUBLE as ``Double.toString`` prints it."""
    return _java_text(value, _DOUBLE_BITS, -1022)


def java_float_text(value: float) -> str:
    """Return a FLOAT as ``Float.toString`` prints it."""
    if math.isfinite(value):
        (value,) = struct.unpack("f", struct.pack("f", value))
    return _java_text(value, _FLOAT_BITS, -126)


def _java_text(value: float, bits: int, least_exponent: int) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    exponent = math.frexp(value)[1] - 1
    # Below the least exponent a number has fewer significant bits.
    digits, power = _digits(abs(value), exponent, bits + min(exponent - least_exponent, 0))
    if _PLAIN_FROM <= power < _PLAIN_BELOW:
        return sign + _plain(digits, power)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _digits(value: float, exponent: int, bits: int) -> tuple[str, int]:
    """Return the significant digits of ``value``, and the power of ten of the first digit."""
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1 and exponent <= _LAST_LONG_EXPONENT:
        return _digits_of_whole(numerator, exponent - bits - 1)
    return _shortest(numerator, denominator, exponent, bits)


def _digits_of_whole(number: int, spare_bits: int) -> tuple[str, int]:
    """Return the digits of a whole number, and the power of ten of the first digit.

    If ``spare_bits`` is positive, the last ``n`` digits are beyond the type's precision, and are
    rounded away: ``n`` is the largest number with ``10 ** n <= 2 ** spare_bits``.
    """
    power = len(str(number)) - 1
    insignificant = len(str(1 << spare_bits)) - 1 if spare_bits > 1 else 0
    if insignificant:
        unit = 10**insignificant
        number = (number + unit // 2) // unit
        power = len(str(number)) - 1 + insignificant
    return str(number).rstrip("0"), power


def _shortest(numerator: int, denominator: int, exponent: int, bits: int) -> tuple[str, int]:
    """Return the digits that Java prints, and the power of ten of the first digit.

    Digits are generated until they, rounded up or down, differ from the number by less than half
    the distance to the next floating-point number. For a power of two, the next smaller number is
    half as far away as the next larger one; Java uses the smaller distance in both directions.
    """
    power = _estimated_power(numerator, denominator, exponent)
    rest, scale, margin = _as_whole_numbers(numerator, denominator, exponent - bits, power)
    width = _width(rest, scale, power)
    digits: list[int] = []
    is_low = is_high = is_begun = False
    while not (digits and (is_low or is_high)):
        digit, rest = divmod(rest, scale)
        rest, margin = rest * 10, _wrapped(margin * 10, width)
        is_low = margin <= 0 or rest < margin  # margin <= 0: Java's integer overflowed
        is_high = margin <= 0 or _wrapped(rest + margin, width) > scale * 10
        if is_begun or digit or is_high:
            digits.append(digit)
        else:
            power -= 1  # the estimate was one too high
        if not is_begun and not _PLAIN_FROM <= power <= _PLAIN_BELOW:
            is_low = is_high = False  # Java prints at least two digits where it uses an exponent
        is_begun = True
    return _rounded(digits, power, rest * 2 - scale * 10, is_low=is_low, is_high=is_high)


def _as_whole_numbers(
    numerator: int, denominator: int, half_step: int, power: int
) -> tuple[int, int, int]:
    """Return the number divided by ``10 ** power``: a numerator, a denominator and an error margin.

    The margin has the same denominator. The three whole numbers have no common factor.
    ``2 ** half_step`` is half the distance to the next number.
    """
    fives, twos = 5 ** abs(power), denominator.bit_length() - 1
    is_power_of_two = numerator & (numerator - 1) == 0
    odd = numerator // (numerator & -numerator)
    up = (numerator & -numerator).bit_length() - 1 - twos - power
    down = half_step - is_power_of_two - power
    shift = -min(up, down, 0)
    rest, scale, margin = odd << (up + shift), 1 << shift, 1 << (down + shift)
    if power >= 0:
        return rest, scale * fives, margin
    return rest * fives, scale, margin * fives


def _width(rest: int, scale: int, power: int) -> int | None:
    """Return the size in bits of the integers with which Java computes this number.

    Integers of 32 or 64 bits may overflow. None stands for integers of any size.
    """
    fives = 5 ** max(-power, 0)
    factors = (rest // fives).bit_length() + (fives.bit_length() if power < 0 else 0)
    needed = max(factors, (scale * 10).bit_length())
    return 32 if needed < 32 else 64 if needed < 64 else None


def _wrapped(number: int, width: int | None) -> int:
    if width is None:
        return number
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half


def _rounded(
    digits: list[int], power: int, beyond_half: int, *, is_low: bool, is_high: bool
) -> tuple[str, int]:
    """Return the rounded digits, and the power of ten of the first digit.

    ``is_low`` is True if the number with these digits is near enough to the exact number.
    ``is_high`` is True if the number with the last digit rounded up is near enough. If both are
    True, the nearer number is taken.
    """
    number, count = int("".join(map(str, digits))), len(digits)
    is_nearer = beyond_half > 0 or (beyond_half == 0 and digits[-1] % 2 == 1)
    if is_high and (not is_low or is_nearer):
        number += 1
    text = str(number)
    return text.rstrip("0"), power + len(text) - count


def _estimated_power(numerator: int, denominator: int, exponent: int) -> int:
    """Estimate the power of ten of the first digit; the result may be one too high."""
    if exponent >= 0:
        fraction = numerator / (denominator << exponent)
    else:
        fraction = (numerator << -exponent) / denominator
    return math.floor((fraction - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return "0." + "0" * (-power - 1) + digits
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{whole}.{digits[power + 1 :] or '0'}"
