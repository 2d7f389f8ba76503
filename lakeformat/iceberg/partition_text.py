# SPDX-License-Identifier: Apache-2.0
"""Formats partition values as Java does: the hour 442027 is ``2020-06-04-19``."""

from __future__ import annotations

import base64
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import PrimitiveType

__all__ = ["partition_text"]

_NULL = "null"
_EPOCH_YEAR = 1970
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_LEAST_PLAIN, _GREATEST_PLAIN = -3, 6
"""The smallest and the largest decimal exponent of a number that is written without an exponent.

Such a number is 0, or its absolute value is at least 0.001 and less than 10,000,000.
"""
_WITHOUT_SECONDS = ":00"
_GROUP = 3
"""The digits of a fraction of a second are written in groups of this size."""


def partition_text(transform: str, kind: PrimitiveType, value: pa.Array) -> str:
    """Return a partition value as text; ``value`` is an array of length one.

    Return ``null`` for a null, and for the transform ``void``.
    """
    parsed = parse_transform(transform).kind
    if value.null_count or parsed is TransformKind.VOID:
        return _NULL
    match parsed:
        case TransformKind.YEAR:
            return f"{_EPOCH_YEAR + value[0].as_py():04d}"
        case TransformKind.MONTH:
            years, month = divmod(value[0].as_py(), 12)
            return f"{_EPOCH_YEAR + years:04d}-{month + 1:02d}"
        case TransformKind.HOUR:
            hours = pa.array([value[0].as_py() * 3600], pa.timestamp("s"))
            # A year after 9999 has more digits.
            return str(hours.cast(pa.string())[0]).partition(":")[0].replace(" ", "-")
    return _value_text(kind, value)


def _value_text(kind: PrimitiveType, value: pa.Array) -> str:
    if kind.name in ("binary", "fixed"):
        return base64.b64encode(value[0].as_py()).decode("ascii")
    if kind.name == "uuid":
        return str(UUID(bytes=value[0].as_py()))
    if kind.name == "boolean":
        return str(value[0].as_py()).lower()
    if kind.name.startswith("timestamp"):
        zone = "+00:00" if kind.name.startswith("timestamptz") else ""
        return _timestamp_text(value) + zone
    if kind.name == "time":
        return _time_text(value)
    if kind.name in ("float", "double"):
        return _float_text(value[0])
    return str(value.cast(pa.string())[0])


def _float_text(value: pa.Scalar) -> str:
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


def _time_text(value: pa.Array) -> str:
    """Return a time as Java's ``LocalTime`` does: ``10:00``, ``10:00:01``, ``10:00:00.500``."""
    text, _, fraction = str(value.cast(pa.string())[0]).partition(".")
    digits = fraction.rstrip("0")
    if not digits:
        return text.removesuffix(_WITHOUT_SECONDS)
    return f"{text}.{digits.ljust(-(-len(digits) // _GROUP) * _GROUP, '0')}"


def _timestamp_text(value: pa.Array) -> str:
    """Return a timestamp in the ISO format, without zeros at the end of its fraction."""
    plain = value.cast(pa.timestamp(value.type.unit))
    text, _, fraction = str(plain.cast(pa.string())[0]).replace(" ", "T").partition(".")
    digits = fraction.rstrip("0")
    return f"{text}.{digits}" if digits else text
