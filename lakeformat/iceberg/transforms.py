# SPDX-License-Identifier: Apache-2.0
"""The transforms of partition specs: they calculate partition values from columns.

Transforms are applied to whole Arrow arrays. The result for a null is null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.decimal_bytes import decimals_to_bytes
from lakeformat.rows.murmur import hash_bytes, hash_longs
from lakeformat.types.arrow_memory import array_of, numbers
from lakeformat.types.casts.floor_division import floor_divide

__all__ = ["Transform", "TransformKind", "parse_transform"]

_WITH_NUMBER = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_LARGEST = 2**31 - 1
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_SECONDS = {"day": 86_400, "hour": 3_600}
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class TransformKind(StrEnum):
    """The kinds of transforms in the specification."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    TRUNCATE = "truncate"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    VOID = "void"
    UNKNOWN = "unknown"
    """A transform that this version does not know; its values are not used to skip files."""


_PLAIN = {
    kind.value: kind
    for kind in TransformKind
    if kind not in (TransformKind.BUCKET, TransformKind.TRUNCATE, TransformKind.UNKNOWN)
}
# Early versions of Java wrote these in the plural.
_PLAIN |= {f"{name}s": _PLAIN[name] for name in ("year", "month", "day", "hour")}
_IN_TIME = (TransformKind.YEAR, TransformKind.MONTH, TransformKind.DAY, TransformKind.HOUR)


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform; ``number`` is the number of buckets, or the width of ``truncate``, else 0."""

    kind: TransformKind
    number: int = 0
    text: str = ""
    """The transform as the metadata writes it."""

    @property
    def keeps_order(self) -> bool:
        """True for ``identity``, ``truncate``, ``year``, ``month``, ``day`` and ``hour``.

        For these, a larger value gives an equal or larger result. The only exception is
        ``truncate`` of a number so close to the lowest one of its type that the result overflows.
        """
        return self.kind in (TransformKind.IDENTITY, TransformKind.TRUNCATE, *_IN_TIME)

    def result_type(self, source: pa.DataType) -> pa.DataType:
        """Return the Arrow type of the results for values of type ``source``.

        Raise ``UnsupportedError`` for an unknown transform.
        """
        match self.kind:
            case TransformKind.IDENTITY | TransformKind.TRUNCATE | TransformKind.VOID:
                return source
            case TransformKind.DAY:
                return pa.date32()
            case TransformKind.UNKNOWN:
                raise self._unknown()
        return pa.int32()

    def apply(self, values: pa.Array) -> pa.Array:
        """Return the result for each value; its type is ``result_type``.

        Raise ``UnsupportedError`` for an unknown transform, and ``InvalidRequestError`` for a value
        without a result.
        """
        match self.kind:
            case TransformKind.IDENTITY:
                return values
            case TransformKind.VOID:
                return pa.nulls(len(values), values.type)
            case TransformKind.BUCKET:
                return _buckets(values, self.number)
            case TransformKind.TRUNCATE:
                return _truncated(values, self.number)
            case TransformKind.YEAR | TransformKind.MONTH:
                return _months(values, self.kind)
            case TransformKind.DAY | TransformKind.HOUR:
                return _steps(values, self.kind)
        raise self._unknown()

    def _unknown(self) -> UnsupportedError:
        return UnsupportedError(
            f"this version does not know the partition transform {self.text!r}: use a newer "
            "version, or the engine that created the partition spec"
        )


def parse_transform(text: str) -> Transform:
    """Parse a transform from metadata; any unknown text gives UNKNOWN."""
    if text in _PLAIN:
        return Transform(_PLAIN[text], text=text)
    found = _WITH_NUMBER.fullmatch(text)
    if found and 1 <= int(found[2]) <= _LARGEST:
        return Transform(TransformKind(found[1]), int(found[2]), text)
    return Transform(TransformKind.UNKNOWN, text=text)


def _buckets(values: pa.Array, count: int) -> pa.Array:
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        hashes = hash_longs(_as_longs(values))
    elif pa.types.is_decimal(kind):
        hashes = hash_bytes(decimals_to_bytes(values))
    else:
        hashes = hash_bytes(values.cast(pa.binary()))
    buckets = (hashes & np.int32(_LARGEST)) % np.int32(count)
    return _null_like(array_of(buckets.astype(np.int32)), values)


def _as_longs(values: pa.Array) -> NDArray[np.int64]:
    """Return numbers, days and times as 64-bit integers; times are in microseconds."""
    found: NDArray[np.int64] = numbers(values).astype(np.int64)
    unit = getattr(values.type, "unit", None)
    if unit == "ns":
        return np.floor_divide(found, 1_000)
    return found * _MICROS[unit] if unit in _MICROS else found


def _truncated(values: pa.Array, width: int) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind):
        return pc.utf8_slice_codeunits(values, 0, width)
    if pa.types.is_binary(kind):
        return pc.binary_slice(values, 0, width)
    if pa.types.is_decimal(kind):
        return _truncated_decimals(values, width)
    found = numbers(values)
    rest = np.mod(found.astype(np.int64), np.int64(width)).astype(found.dtype)
    return _null_like(array_of(found - rest).cast(kind), values)


def _truncated_decimals(values: pa.Array, width: int) -> pa.Array:
    """Truncate decimals; each is calculated as an unscaled integer in two halves of 64 bits."""
    halves = numbers(values)
    low, high = halves[:, 0], halves[:, 1].view(np.int64)
    divisor = np.uint64(width)
    carried = np.mod(high, np.int64(width)).view(np.uint64) * np.uint64(2**64 % width)
    rest = (carried % divisor + low % divisor) % divisor
    result = np.empty_like(halves)
    result[:, 0] = low - rest
    result[:, 1] = halves[:, 1] - (low < rest)
    # The validity bits of a slice are counted from its own first value.
    validity = None if not values.null_count else pc.is_valid(values).buffers()[1]
    return pa.Array.from_buffers(values.type, len(values), [validity, pa.py_buffer(result)])


def _months(values: pa.Array, kind: TransformKind) -> pa.Array:
    local = values
    if pa.types.is_timestamp(values.type):  # remove the time zone, which is UTC
        local = values.cast(pa.timestamp(values.type.unit))
    years = pc.subtract(pc.year(local), 1970)
    if kind is TransformKind.MONTH:
        years = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(local), 1))
    return years.cast(pa.int32())


def _steps(values: pa.Array, kind: TransformKind) -> pa.Array:
    """Return the number of days or hours since 1970, rounded down.

    Raise ``InvalidRequestError`` for a time whose hours exceed 32 bits.
    """
    if pa.types.is_date(values.type):
        return values
    step = _SECONDS[kind] * _TICKS[values.type.unit]
    try:
        counts = floor_divide(values.view(pa.int64()), step).cast(pa.int32())
    except pa.ArrowInvalid:
        raise InvalidRequestError(
            f"the transform 'hour' has no value for a time more than {_LARGEST} hours (about "
            "245,000 years) from 1970: leave out the rows with such times, or use the transform "
            "'day'"
        ) from None
    return counts.view(pa.date32()) if kind is TransformKind.DAY else counts


def _null_like(found: pa.Array, values: pa.Array) -> pa.Array:
    if not values.null_count:
        return found
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, found.type))
