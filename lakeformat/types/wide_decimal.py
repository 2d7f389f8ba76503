# SPDX-License-Identifier: Apache-2.0
"""Converts 128-bit decimals between Arrow's two halves and the bytes of a row, in numpy.

Arrow stores a number in two's complement, as a low and a high half. A row has 16 bytes for a
number. The first of these bytes hold the number in two's complement, big-endian, in as few bytes as
possible; the rest are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION
from lakeformat.types.unaligned import Positions, Words

__all__ = ["decode_wide", "encode_wide", "exceeds_precision", "magnitude"]

_ONE = np.uint64(1)
_HALF_BITS = np.int64(64)
# The first number that needs one byte more than the number before it.
_BYTE_STEPS = np.array([1 << bits for bits in range(7, 64, 8)], np.uint64)
_MASK = (1 << 64) - 1


def encode_wide(low: Words, high: Words) -> tuple[Words, Words, Words]:
    """Return the 16 bytes that a row stores for each number, as two words of 8 bytes, and the
    number of bytes that are in use.
    """
    sign = _sign(high)
    size = _minimal_size(low ^ sign, high ^ sign)
    # Shift left, then swap: the first bytes in memory are the most significant ones.
    high, low = _shift_left(low, high, 128 - 8 * size.astype(np.int64))
    return high.byteswap(), low.byteswap(), size


def decode_wide(first: Words, second: Words, size: Positions) -> tuple[Words, Words]:
    """Return the low and high halves of numbers that ``encode_wide`` wrote.

    ``first`` and ``second`` are the two words of each number, and ``size`` is the number of bytes
    that are in use.
    """
    high, low = first.byteswap(), second.byteswap()
    drop = 128 - 8 * size
    sign = _sign(high)
    is_far = drop >= 64
    # numpy gives 0 for a shift by 64 or more, which is right for each part here.
    moved_low = np.where(
        is_far,
        _arithmetic_right(high, drop - 64),
        (low >> _bits(drop)) | (high << _bits(_HALF_BITS - drop)),
    )
    moved_high = np.where(is_far, sign, _arithmetic_right(high, drop))
    return moved_low, moved_high


def magnitude(low: Words, high: Words) -> tuple[Words, Words]:
    """Return the low and the high half of the absolute value of each number."""
    sign = _sign(high)
    low, high = low ^ sign, high ^ sign
    carry = (sign & _ONE) & (low == _MASK).astype(np.uint64)
    return low + (sign & _ONE), high + carry


def exceeds_digits(low: Words, high: Words, digits: int) -> NDArray[np.bool_]:
    """Return a mask of the numbers with more than ``digits`` decimal digits."""
    low, high = magnitude(low, high)
    limit_low = np.uint64(10**digits & _MASK)
    limit_high = np.uint64(10**digits >> 64)
    exceeds: NDArray[np.bool_] = (high > limit_high) | ((high == limit_high) & (low >= limit_low))
    return exceeds


def exceeds_precision(low: Words, high: Words, precision: int) -> NDArray[np.bool_]:
    """Return a mask of the numbers that do not fit ``precision``.

    If ``precision`` is at most 18, a number may have more digits, as long as it fits 64 bits.
    """
    if precision <= COMPACT_DECIMAL_PRECISION:
        exceeds: NDArray[np.bool_] = high != _sign(low)
        return exceeds
    return exceeds_digits(low, high, precision)


def _minimal_size(low: Words, high: Words) -> Words:
    """Return the smallest number of bytes that holds each non-negative number and its sign bit.

    ``low`` and ``high`` are the two 64-bit halves of the numbers.
    """
    in_high = np.searchsorted(_BYTE_STEPS, high, side="right") + 9
    in_low = np.searchsorted(_BYTE_STEPS, low, side="right") + 1
    return np.where(high > 0, in_high, in_low).astype(np.uint64)


def _shift_left(low: Words, high: Words, count: Positions) -> tuple[Words, Words]:
    is_far = count >= 64
    near_high = (high << _bits(count)) | (low >> _bits(_HALF_BITS - count))
    return (
        np.where(is_far, low << _bits(count - 64), near_high),
        np.where(is_far, np.uint64(0), low << _bits(count)),
    )


def _arithmetic_right(words: Words, count: Positions) -> Words:
    return (words.view(np.int64) >> np.clip(count, 0, 63)).view(np.uint64)


def _bits(count: Positions) -> Words:
    """Return shift counts as words; a count below 0 becomes 0, and a count above 64 becomes 64.

    The caller ignores the result of a shift whose count was negative.
    """
    return np.clip(count, 0, 64).astype(np.uint64)


def _sign(high: Words) -> Words:
    return (high.view(np.int64) >> np.int64(63)).view(np.uint64)
