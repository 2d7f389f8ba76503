# SPDX-License-Identifier: Apache-2.0
"""Sorts rows along a curve: columns become bytes that compare like their values; Z-order
interleaves the bits of several columns.

A number becomes 8 bytes; a text is cut to its first bytes. The sign bit is flipped so that negative
numbers sort first. Floating-point numbers sort in the order of IEEE 754, and null is all zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.groups import Positions

__all__ = ["ByteRows", "Words", "curve_positions", "ordered_bytes", "words_of", "z_order"]

ByteRows: TypeAlias = npt.NDArray[np.uint8]
"""For each row, a fixed number of bytes; rows compare from the first byte on."""
Words: TypeAlias = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_WORD_BYTES = 8
_LONGEST_COMPACT_DECIMAL = 18


def ordered_bytes(column: pa.Array, text_bytes: int) -> ByteRows:
    """Return a column as bytes that compare like its values.

    Texts and binaries are cut, or padded with zeros, to ``text_bytes``.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_bytes(column.type):
        found = _first_bytes(column.cast(pa.large_binary()), text_bytes)
    else:
        found = _big_endian(_ordered_words(column))
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def z_order(columns: Sequence[ByteRows]) -> ByteRows:
    """Return, for each row, the bits of all columns interleaved, highest bit first.

    Once the shorter columns have no bits left, only the bits of the longer columns follow.
    """
    sizes = [column.shape[1] for column in columns]
    found = np.empty((len(columns[0]), sum(sizes)), np.uint8)
    start = 0
    for byte in range(max(sizes)):
        # Columns have whole bytes, so one byte of each is interleaved at a time.
        mixed = [column for column, size in zip(columns, sizes, strict=True) if size > byte]
        for word in range(-(-len(mixed) // _WORD_BYTES)):
            size = min(len(mixed) - word * _WORD_BYTES, _WORD_BYTES)
            bits = np.zeros(len(found), np.uint64)
            for number, column in enumerate(mixed):
                bits |= _spread(number, len(mixed))[word].take(column[:, byte])
            found[:, start : start + size] = _big_endian(bits)[:, :size]
            start += size
    return found


def words_of(rows: ByteRows) -> Words:
    """Return the bytes of each row as 64-bit numbers, which sort faster.

    Zeros pad the last number.
    """
    count, size = rows.shape
    padded = np.zeros((count, -(-size // _WORD_BYTES) * _WORD_BYTES), np.uint8)
    padded[:, :size] = rows
    return padded.view(">u8").astype(np.uint64)


def curve_positions(keys: ByteRows) -> Positions:
    """Return the positions of rows sorted by their bytes; equal rows keep their order."""
    words = words_of(keys)
    if words.shape[1] == 1:
        return np.argsort(words[:, 0], kind="stable")
    return np.lexsort(words.T[::-1])


@cache
def _spread(number: int, count: int) -> Words:
    """Return the bits of all 256 byte values, with gaps for the bits of the other columns.

    ``number`` is the position of the column among ``count`` columns. The bits of one byte value,
    with the gaps, fill one or more 64-bit words. The result has one row for each of these words,
    and each row has one element for each byte value.
    """
    bits = np.zeros((256, -(-count // _WORD_BYTES) * _WORD_BYTES * 8), np.uint8)
    all_bytes = np.arange(256, dtype=np.uint8)[:, None]
    bits[:, number : 8 * count : count] = np.unpackbits(all_bytes, axis=1)
    return np.ascontiguousarray(words_of(np.packbits(bits, axis=1)).T)


def _big_endian(words: Words) -> ByteRows:
    return words.astype(">u8").view(np.uint8).reshape(-1, _WORD_BYTES)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
        or types.is_fixed_size_binary(arrow_type)
    )


def _first_bytes(column: pa.Array, size: int) -> ByteRows:
    _, offsets, values = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    found = np.zeros((len(column), size), np.uint8)
    if values is None or not values.size:
        return found
    data = np.frombuffer(values, np.uint8)
    for byte in range(size):
        longer = np.flatnonzero(np.diff(ends) > byte)
        found[longer, byte] = data[ends[longer] + byte]
    return found


def _ordered_words(column: pa.Array) -> Words:
    if pa.types.is_floating(column.type):
        return _of_floats(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy())
    if pa.types.is_decimal(column.type):
        return _of_decimals(column)
    return _of_integers(pc.fill_null(_as_integers(column), 0).to_numpy(zero_copy_only=False))


def _as_integers(column: pa.Array) -> pa.Array:
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.view(pa.int32())
    return column.cast(pa.int64())


def _of_integers(numbers: npt.NDArray[np.int64]) -> Words:
    return np.ascontiguousarray(numbers).view(np.uint64) ^ _SIGN


def _of_floats(numbers: npt.NDArray[np.float64]) -> Words:
    """Return words that sort like ``numbers``.

    All bits of a negative number are flipped. Of any other number, only the sign bit is flipped.
    """
    bits = np.ascontiguousarray(numbers).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _of_decimals(column: pa.Array) -> Words:
    """Return words that sort like the decimals of a column.

    If the type has at most 18 digits, the order is exact. If it has more, decimals that differ only
    after about 16 digits may get equal words.
    """
    halves = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    low, high = halves[column.offset : column.offset + len(column)].T
    if column.type.precision <= _LONGEST_COMPACT_DECIMAL:
        return _of_integers(low)
    large = high * 2.0**64 + np.ascontiguousarray(low).view(np.uint64)
    # the sum would lose the digits of a small negative decimal
    return _of_floats(np.where(high == low >> 63, low, large))
