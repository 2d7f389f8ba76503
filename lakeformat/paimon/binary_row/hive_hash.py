# SPDX-License-Identifier: Apache-2.0
"""Hive's hash of a value, by which ``bucket-function.type = hive`` chooses the bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.types.arrow_memory import null_mask, numbers, spans
from lakeformat.types.type_kinds import is_bytes
from lakeformat.types.types import AtomicType, DataType, TypeName
from lakeformat.types.unaligned import Positions, Words
from lakeformat.types.wide_decimal import magnitude

__all__ = ["HIVE_TYPES", "hive_hashes"]

Hashes = NDArray[np.uint32]

HIVE_TYPES = frozenset(
    {
        TypeName.BOOLEAN,
        TypeName.TINYINT,
        TypeName.SMALLINT,
        TypeName.INT,
        TypeName.BIGINT,
        TypeName.FLOAT,
        TypeName.DOUBLE,
        TypeName.DATE,
        TypeName.TIME,
        TypeName.DECIMAL,
        TypeName.CHAR,
        TypeName.VARCHAR,
        TypeName.BINARY,
        TypeName.VARBINARY,
        TypeName.GEOMETRY,
        TypeName.GEOGRAPHY,
    }
)
"""The types that have a Hive hash; timestamps have none."""

_FACTOR = 31
_MASK = 0xFFFFFFFF
_HALF = np.uint64(32)

# For fewer values, one Python loop per value is faster than numpy steps over all values.
_FEW = 16
_BLOCK = 1 << 16


def hive_hashes(column: pa.Array, data_type: DataType) -> Hashes:
    """Return the 32-bit Hive hash of each value of a column; the hash of a null is 0."""
    nulls = null_mask(column)
    if is_bytes(data_type):
        return _of_bytes(*spans(column, nulls))
    assert isinstance(data_type, AtomicType)
    if data_type.name is TypeName.DECIMAL:
        hashes = _of_decimals(numbers(column), data_type.scale)
    else:
        hashes = _of_numbers(numbers(column))
    return hashes if nulls is None else np.where(nulls, np.uint32(0), hashes)


def _of_numbers(values: NDArray[Any]) -> Hashes:
    if values.dtype.kind == "f":
        values = _float_bits(values)
    if values.itemsize < 8:
        return values.astype(np.int32).view(np.uint32)
    words = values.view(np.uint64)
    return (words ^ (words >> _HALF)).astype(np.uint32)


def _float_bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of floats as Java's ``floatToIntBits``, with one value for all NaN.

    Unlike in Java, the bits of both zeros are 0.
    """
    same = np.where(values == 0, values.dtype.type(0), values)
    same[np.isnan(values)] = np.nan
    return same.view(f"<i{values.itemsize}")


def _of_bytes(source: Words, starts: Positions, sizes: Positions) -> Hashes:
    """Return ``h = 31 * h + signed byte`` over the bytes of each value.

    The first bytes of all values are hashed together, then the second bytes, and so on.
    """
    longest = int(sizes.max(initial=0))
    narrow = np.uint16 if longest <= 0xFFFF else np.int64
    order = np.argsort((longest - sizes).astype(narrow), kind="stable")
    starts, remaining = starts[order], -sizes[order]
    signed = source.view(np.int8)
    hashes = np.zeros(len(sizes), np.uint32)
    done, active = 0, int(np.searchsorted(remaining, 0))
    while active > _FEW:
        hashes[:active] *= np.uint32(_FACTOR)
        hashes[:active] += signed[starts[:active] + done].astype(np.uint32)
        done += 1
        active = int(np.searchsorted(remaining[:active], -done))
    for row in range(active):
        rest = signed[starts[row] + done : starts[row] - remaining[row]]
        hashes[row] = _continue(int(hashes[row]), rest)
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _continue(hashed: int, rest: NDArray[np.int8]) -> int:
    for start in range(0, len(rest), _BLOCK):
        for byte in rest[start : start + _BLOCK].tolist():
            hashed = hashed * _FACTOR + byte & _MASK
    return hashed


def _of_decimals(halves: Words, scale: int) -> Hashes:
    """Return Java's ``BigDecimal.hashCode`` after trailing zeros of the fraction are removed."""
    is_negative = halves[:, 1].view(np.int64) < 0
    limbs = _limbs(*magnitude(halves[:, 0], halves[:, 1]))
    scales = np.full(len(halves), scale, np.uint32)
    rows = np.arange(len(halves))
    for _ in range(scale):
        divided, remainder = _divide_by_ten([limb[rows] for limb in limbs])
        ends_in_zero = remainder == 0
        rows = rows[ends_in_zero]
        if not len(rows):
            break
        for limb, quotient in zip(limbs, divided, strict=True):
            limb[rows] = quotient[ends_in_zero]
        scales[rows] -= np.uint32(1)
    hashes = np.zeros(len(halves), np.uint32)
    for limb in limbs:
        hashes *= np.uint32(_FACTOR)
        hashes += limb.astype(np.uint32)
    signed = np.where(is_negative, np.negative(hashes), hashes)
    return signed * np.uint32(_FACTOR) + scales


def _limbs(low: Words, high: Words) -> list[Words]:
    """Return 128-bit numbers as four digits of 32 bits, the highest digit first."""
    mask = np.uint64(_MASK)
    return [high >> _HALF, high & mask, low >> _HALF, low & mask]


def _divide_by_ten(limbs: list[Words]) -> tuple[list[Words], Words]:
    ten = np.uint64(10)
    remainder = np.zeros_like(limbs[0])
    quotients = []
    for limb in limbs:
        value = (remainder << _HALF) | limb
        quotient = value // ten
        quotients.append(quotient)
        remainder = value - quotient * ten
    return quotients, remainder
