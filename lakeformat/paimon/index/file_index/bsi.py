# SPDX-License-Identifier: Apache-2.0
"""The index ``bsi``: numbers as one bitmap per bit; negative numbers have their own bitmaps.

Paimon has deprecated this index, but tables still have it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lakeformat.errors import UnsupportedError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.roaring import bitmap_of, encode_bitmap
from lakeformat.paimon.file_index_types import INDEXABLE
from lakeformat.paimon.index.file_index.bit_slices import BitSlices, slices_of
from lakeformat.paimon.index.file_index.container import REBUILD
from lakeformat.paimon.index.file_index.integers import (
    Column,
    as_column,
    as_literals,
    exact_integers_of,
    integers_of,
    is_rounded,
    require_type,
    rows_with_values,
)
from lakeformat.paimon.index.file_index.row_positions import read_row_count, read_rows, rows_but
from lakeformat.types.types import AtomicType, DataType

__all__ = ["BSI", "BsiIndex", "encode_bsi", "read_bsi"]

BSI = "bsi"
FORMAT_VERSION = 1
_MOST_SLICES = 64


def encode_bsi(column: Column, data_type: DataType) -> bytes:
    """Return the index of a column.

    Raise UnsupportedError for a data type that the index does not support, for a decimal of more
    than 64 bits, and for the lowest BIGINT, whose absolute value needs more than 63 bits.
    """
    data_type = require_type(data_type, INDEXABLE[BSI], BSI)
    array = as_column(column, data_type)
    rows, numbers = rows_with_values(array), integers_of(array, data_type)
    if len(numbers) and numbers.min() == np.iinfo(np.int64).min:
        raise UnsupportedError(
            f"a {BSI} index cannot hold {numbers.min()}: use a range-bitmap for this column"
        )
    negative = numbers < 0
    return (
        struct.pack(">bi", FORMAT_VERSION, len(array))
        + _encode_part(rows[~negative], numbers[~negative])
        + _encode_part(rows[negative], -numbers[negative])
    )


def read_bsi(body: bytes, data_type: DataType, source: str) -> BsiIndex:
    """Read the index of a column of ``data_type``; ``source`` names the index in errors.

    Raise CorruptTableError for a damaged index or an unknown version. Raise UnsupportedError if the
    index does not support the data type.
    """
    data_type = require_type(data_type, INDEXABLE[BSI], BSI)
    cursor = ByteCursor(body, source, remedy=REBUILD)
    cursor.version(FORMAT_VERSION)
    row_count = read_row_count(cursor)
    positive = _read_part(cursor, row_count)
    negative = _read_part(cursor, row_count)
    return BsiIndex(data_type, row_count, positive, negative)


@dataclass(frozen=True, slots=True, eq=False)
class BsiIndex:
    """Finds the rows that match a comparison; for TIMESTAMP(7) and finer, the rows that may
    match.

    The index stores such timestamps in microseconds. So each comparison also returns the rows in
    the same microsecond as the given value.
    """

    data_type: AtomicType
    row_count: int
    _positive: _SliceBlock
    """The bitmaps of the numbers from 0 on."""
    _negative: _SliceBlock
    """The bitmaps of the absolute values of the negative numbers."""

    def equal_to(self, value: object) -> BitMap:
        """Return the rows whose value equals ``value``; none if ``value`` is None."""
        return self.one_of([value])

    def one_of(self, values: Sequence[object]) -> BitMap:
        """Return the rows whose value equals one of ``values``; None equals nothing."""
        found = BitMap()
        for number in self._numbers(values):
            part = self._positive if number >= 0 else self._negative
            found |= part.slices.equal_to(abs(number) - part.least)
        return found

    def is_null(self) -> BitMap:
        """Return the rows whose value is null."""
        return rows_but(self.is_not_null(), self.row_count)

    def is_not_null(self) -> BitMap:
        """Return the rows whose value is not null."""
        return self._positive.slices.existing | self._negative.slices.existing

    def less_than(self, value: object) -> BitMap:
        """Return the rows whose value is less than ``value``; none if ``value`` is None."""
        if is_rounded(self.data_type):
            # Equal microseconds may differ in their nanoseconds.
            return self.at_most(value)
        return self._below([number - 1 for number in self._numbers([value])])

    def at_most(self, value: object) -> BitMap:
        """Return the rows whose value is ``value`` or less; none if ``value`` is None."""
        return self._below(self._numbers([value]))

    def greater_than(self, value: object) -> BitMap:
        """Return the rows whose value is greater than ``value``; none if ``value`` is None."""
        if is_rounded(self.data_type):
            return self.at_least(value)
        return self._above([number + 1 for number in self._numbers([value])])

    def at_least(self, value: object) -> BitMap:
        """Return the rows whose value is ``value`` or greater; none if ``value`` is None."""
        return self._above(self._numbers([value]))

    def _below(self, limits: list[int]) -> BitMap:
        """Return the rows whose number is at most ``limits[0]``; none if ``limits`` is empty."""
        positive, negative = self._positive, self._negative
        for limit in limits:
            if limit < 0:
                return negative.slices.at_least(-limit - negative.least)
            return positive.slices.at_most(limit - positive.least) | negative.slices.existing
        return BitMap()

    def _above(self, limits: list[int]) -> BitMap:
        """Return the rows whose number is at least ``limits[0]``; none if ``limits`` is empty."""
        positive, negative = self._positive, self._negative
        for limit in limits:
            if limit < 0:
                return positive.slices.existing | negative.slices.at_most(-limit - negative.least)
            return positive.slices.at_least(limit - positive.least)
        return BitMap()

    def _numbers(self, values: Sequence[object]) -> list[int]:
        # A decimal that is too large for the index can still be compared.
        return exact_integers_of(as_literals(values, self.data_type), self.data_type)


@dataclass(frozen=True, slots=True, eq=False)
class _SliceBlock:
    """The bitmaps of all numbers with the same sign."""

    least: int
    """The number that the writer subtracted from every stored number; writers use 0."""
    slices: BitSlices


def _encode_part(rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> bytes:
    if not len(rows):
        return struct.pack(">?", False)
    highest = int(numbers.max())
    slices = slices_of(rows, numbers, highest.bit_length())
    return b"".join(
        [
            struct.pack(">?bqq", True, FORMAT_VERSION, 0, highest),
            encode_bitmap(bitmap_of(rows)),
            struct.pack(">i", len(slices)),
            *map(encode_bitmap, slices),
        ]
    )


def _read_part(cursor: ByteCursor, row_count: int) -> _SliceBlock:
    if not cursor.flag():
        return _SliceBlock(0, BitSlices(BitMap(), ()))
    cursor.version(FORMAT_VERSION)
    least, _ = cursor.int64(), cursor.int64()
    existing = read_rows(cursor, row_count)
    count = cursor.count("bit slices", at_most=_MOST_SLICES)
    slices = tuple(read_rows(cursor, row_count) for _ in range(count))
    return _SliceBlock(least, BitSlices(existing, slices))
