# SPDX-License-Identifier: Apache-2.0
"""Formats numbers and times as Java's ``toString`` does."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

__all__ = ["float_text", "time_text", "timestamp_text"]

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_LEAST_PLAIN, _GREATEST_PLAIN = -3, 6
"""The exponents of the numbers that are written without one."""
_WITHOUT_SECONDS = ":00"
_GROUP = 3
"""The digits of a fraction of a second are written in groups of this size."""


def float_text(value: pa.Scalar) -> str:
    """Return a float or double with the fewest digits that identify it: ``1.0``, ``1.5E10``."""
    number = (np.float32 if value.type == pa.float32() else np.float64)(value.as_py())
    text = str(number)
    if text in _NAMES:
        return _NAMES[text]
    parts = Decimal(text).as_tuple()
    digits = "".join(map(str, parts.digits)).rstrip("0") or "0"
    exponent = 0 if digits == "0" else Decimal(text).adjusted()
    sign = "-" if parts.sign else ""
    if not _LEAST_PLAIN <= exponent <= _GREATEST_PLAIN:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


def time_text(value: pa.Array) -> str:
    """Return a time as ``LocalTime`` does: ``10:00``, ``10:00:01``, ``10:00:00.500``."""
    text, _, fraction = str(value.cast(pa.string())[0]).partition(".")
    digits = fraction.rstrip("0")
    if not digits:
        return text.removesuffix(_WITHOUT_SECONDS)
    return f"{text}.{digits.ljust(-(-len(digits) // _GROUP) * _GROUP, '0')}"


def timestamp_text(value: pa.Array) -> str:
    """Return a timestamp in the ISO format, without zeros at the end of its fraction."""
    plain = value.cast(pa.timestamp(value.type.unit))
    text, _, fraction = str(plain.cast(pa.string())[0]).replace(" ", "T").partition(".")
    digits = fraction.rstrip("0")
    return f"{text}.{digits}" if digits else text
