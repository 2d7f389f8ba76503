"""Floating-point numbers as Java prints them: directory names and casts keep that text."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["java_double_text", "java_float_text"]

_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def java_double_text(value: float) -> str:
    """A DOUBLE as ``Double.toString`` prints it."""
    return _java_text(value, repr(abs(value)))


def java_float_text(value: float) -> str:
    """A FLOAT as ``Float.toString`` prints it."""
    return _java_text(value, str(np.float32(abs(value))))


def _java_text(value: float, shortest: str) -> str:
    """``shortest`` are the fewest digits that tell the number from its neighbours."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    digits, exponent = _digits(shortest)
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(text: str) -> tuple[str, int]:
    """The significant digits, and the power of ten of the first one."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + int(power or 0)
    return (digits.rstrip("0") or "0", exponent) if digits else ("0", 0)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"
