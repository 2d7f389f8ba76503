# SPDX-License-Identifier: Apache-2.0
"""Numbers of a column in numpy: the arithmetic of each type, and conversion to Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.merge.functions.segments import raw_numbers
from lakeformat.rows.groups import Mask

__all__ = [
    "LONG",
    "Arithmetic",
    "Numbers",
    "arithmetic_of",
    "from_halves",
    "from_numbers",
    "range_of",
    "to_numbers",
    "wide_halves",
]

Numbers = npt.NDArray[Any]
_LONG_DIGITS = 18


class Arithmetic(Enum):
    """The kinds of arithmetic: how the numbers of a type are added."""

    INTEGER = "refused if the result overflows the declared width"
    FLOAT = "one addition after the other, each rounded as in IEEE 754"
    LONG_DECIMAL = "may exceed the precision; refused if the unscaled sum exceeds 64 bits"
    WIDE_DECIMAL = "exact; null if the result exceeds the precision"


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest number of a type, both inclusive."""

    low: int
    high: int


LONG = Range(-(1 << 63), (1 << 63) - 1)
"""The range of a signed 64-bit number."""


def arithmetic_of(data_type: pa.DataType) -> Arithmetic:
    """Return the arithmetic of a numeric type."""
    if pa.types.is_floating(data_type):
        return Arithmetic.FLOAT
    if pa.types.is_decimal(data_type):
        short = data_type.precision <= _LONG_DIGITS
        return Arithmetic.LONG_DECIMAL if short else Arithmetic.WIDE_DECIMAL
    return Arithmetic.INTEGER


def range_of(data_type: pa.DataType) -> Range:
    """Return the smallest and largest number of an integer type.

    For a decimal type these are the smallest and largest unscaled number.
    """
    if pa.types.is_decimal(data_type):
        most = 10**data_type.precision - 1
        return Range(-most, most)
    bits = data_type.bit_width
    return Range(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def to_numbers(values: pa.Array) -> Numbers:
    """Return the numbers of a column: int64 for integers and decimals of at most 18 digits.

    Decimals are unscaled; decimals of more digits are Python ints. Floats keep their type. For
    a null the number is arbitrary.
    """
    match arithmetic_of(values.type):
        case Arithmetic.LONG_DECIMAL:
            pairs = np.frombuffer(values.buffers()[1] or b"", np.int64)[2 * values.offset :]
            return pairs[: 2 * len(values) : 2]
        case Arithmetic.WIDE_DECIMAL:
            lows, highs = wide_halves(values)
            whole: Numbers = (highs.astype(object) << 64) + lows.astype(object)
            return whole
        case Arithmetic.FLOAT:
            return raw_numbers(values, values.type.to_pandas_dtype())
    return raw_numbers(values, values.type.to_pandas_dtype()).astype(np.int64, copy=False)


def from_numbers(numbers: Numbers, valid: Mask, data_type: pa.DataType) -> pa.Array:
    """Return a column of ``numbers``, null where ``valid`` is False; decimals are unscaled."""
    match arithmetic_of(data_type):
        case Arithmetic.LONG_DECIMAL:
            pairs = np.empty((len(numbers), 2), np.int64)
            pairs[:, 0] = numbers
            pairs[:, 1] = numbers >> 63
            return _decimals(pairs, valid, data_type)
        case Arithmetic.WIDE_DECIMAL:
            pairs = np.empty((len(numbers), 2), np.int64)
            clean = np.where(valid, numbers, 0)
            pairs[:, 0] = (clean & ((1 << 64) - 1)).astype(np.uint64).view(np.int64)
            pairs[:, 1] = (clean >> 64).astype(np.int64)
            return _decimals(pairs, valid, data_type)
    mask = None if valid.all() else ~valid
    kind = data_type.to_pandas_dtype()
    return pa.array(numbers.astype(kind, copy=False), data_type, mask=mask)


def from_halves(lows: Numbers, highs: Numbers, valid: Mask, data_type: pa.DataType) -> pa.Array:
    """Return a column of decimals of more than 18 digits, null where ``valid`` is False.

    ``lows`` and ``highs`` are the low and the high 64 bits of each unscaled value.
    """
    pairs = np.empty((len(lows), 2), np.int64)
    pairs[:, 0] = lows
    pairs[:, 1] = highs
    return _decimals(pairs, valid, data_type)


def _decimals(pairs: Numbers, valid: Mask, data_type: pa.DataType) -> pa.Array:
    # From buffers, because a value may have more digits than declared, as in Java.
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(data_type, len(pairs), [bits, pa.py_buffer(pairs)])


def wide_halves(values: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the low and the high 64 bits of the unscaled values of decimals.

    The bits of nulls are arbitrary.
    """
    pairs = np.frombuffer(values.buffers()[1] or b"", np.int64)[2 * values.offset :]
    pairs = pairs[: 2 * len(values)]
    return pairs[::2].view(np.uint64), pairs[1::2]
