# SPDX-License-Identifier: Apache-2.0
"""The index ``range-bitmap``: each distinct value gets a number, in the order of the values. For
each bit of these numbers, a bitmap (a slice) has the rows whose number has that bit.

The dictionary has the sorted values in chunks. The header of a chunk has its first value; the other
values follow after all headers, so a lookup reads few values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.roaring import bitmap_of, encode_bitmap
from lakeformat.paimon.index.file_index.bit_slices import BitSlices, slices_of
from lakeformat.paimon.index.file_index.container import REBUILD
from lakeformat.paimon.index.file_index.integers import Column
from lakeformat.paimon.index.file_index.row_positions import read_row_count, read_rows, rows_but
from lakeformat.paimon.index.file_index.stored_values import (
    DistinctValues,
    distinct_values,
    keys_equal_to,
    read_key,
)
from lakeformat.paimon.index.file_index.value_dictionary import (
    ValueDictionary,
    encode_dictionary,
    read_dictionary,
    require_coded_type,
)
from lakeformat.types.types import AtomicType, DataType

__all__ = ["RANGE_BITMAP", "RangeBitmapIndex", "encode_range_bitmap", "read_range_bitmap"]

RANGE_BITMAP = "range-bitmap"
FORMAT_VERSION = 1
_SLICES_WITHOUT_VALUES = 64
"""The number of slices in an index without values.

Java counts the bits of the largest code (the number of a value). Without values, the largest code
is -1, which has 64 bits in Java.
"""
_MOST_SLICES = 64


def encode_range_bitmap(
    column: Column, data_type: DataType, *, chunk_size: int | None = None
) -> bytes:
    """Return the index of a column.

    ``chunk_size`` is the size of a dictionary chunk in bytes, by default 16 KiB. The default for
    BOOLEAN, TINYINT and SMALLINT is one value for each chunk. Raise UnsupportedError if the index
    does not support the data type, and InvalidRequestError for a negative size.
    """
    data_type = require_coded_type(data_type, RANGE_BITMAP)
    distinct = distinct_values(column, data_type)
    values = distinct.values
    dictionary = encode_dictionary(values, data_type, chunk_size)
    head = struct.pack(">bii", FORMAT_VERSION, distinct.row_count, len(values))
    if len(values):
        head += values.bytes_of(0, 1) + values.bytes_of(len(values) - 1, len(values))
    head += struct.pack(">i", len(dictionary))
    return struct.pack(">i", len(head)) + head + dictionary + _encode_slices(distinct)


def read_range_bitmap(body: bytes, data_type: DataType, source: str) -> RangeBitmapIndex:
    """Read the index of a column of ``data_type``; ``source`` names the index in errors.

    Raise CorruptTableError for a damaged index or an unknown version. Raise UnsupportedError if the
    index does not support the data type.
    """
    data_type = require_coded_type(data_type, RANGE_BITMAP)
    cursor = ByteCursor(body, source, remedy=REBUILD)
    head = _read_head(cursor)
    row_count = read_row_count(head)
    value_count = head.count("values")
    if value_count:
        # The lowest and the highest value are also in the dictionary.
        read_key(head, data_type)
        read_key(head, data_type)
    dictionary_start = cursor.position
    cursor.take(head.count("bytes of dictionary"))
    dictionary = read_dictionary(
        cursor.part(dictionary_start, cursor.position - dictionary_start), data_type, value_count
    )
    return RangeBitmapIndex(data_type, row_count, dictionary, _read_slices(cursor, row_count))


@dataclass(frozen=True, slots=True, eq=False)
class RangeBitmapIndex:
    """Finds exactly the rows that match a comparison."""

    data_type: AtomicType
    row_count: int
    _dictionary: ValueDictionary
    _codes: BitSlices

    def equal_to(self, value: object) -> BitMap:
        """Return the rows whose value equals ``value``; none if ``value`` is None."""
        return self.one_of([value])

    def one_of(self, values: Sequence[object]) -> BitMap:
        """Return the rows whose value equals one of ``values``; None equals nothing."""
        found = BitMap()
        for key in keys_equal_to(values, self.data_type):
            code, is_there = self._dictionary.find(key)
            if is_there:
                found |= self._codes.equal_to(code)
        return found

    def is_null(self) -> BitMap:
        """Return the rows whose value is null."""
        return rows_but(self.is_not_null(), self.row_count)

    def is_not_null(self) -> BitMap:
        """Return the rows whose value is not null."""
        return BitMap(self._codes.existing)

    def less_than(self, value: object) -> BitMap:
        """Return the rows whose value is less than ``value``; none if ``value`` is None."""
        for key in keys_equal_to([value], self.data_type)[:1]:
            return self._codes.less_than(self._dictionary.find(key)[0])
        return BitMap()

    def at_most(self, value: object) -> BitMap:
        """Return the rows whose value is ``value`` or less; none if ``value`` is None."""
        for key in keys_equal_to([value], self.data_type)[-1:]:
            code, is_there = self._dictionary.find(key)
            return self._codes.at_most(code if is_there else code - 1)
        return BitMap()

    def greater_than(self, value: object) -> BitMap:
        """Return the rows whose value is greater than ``value``; none if ``value`` is None."""
        for key in keys_equal_to([value], self.data_type)[-1:]:
            code, is_there = self._dictionary.find(key)
            return self._codes.at_least(code + 1 if is_there else code)
        return BitMap()

    def at_least(self, value: object) -> BitMap:
        """Return the rows whose value is ``value`` or greater; none if ``value`` is None."""
        for key in keys_equal_to([value], self.data_type)[:1]:
            return self._codes.at_least(self._dictionary.find(key)[0])
        return BitMap()


def _encode_slices(distinct: DistinctValues) -> bytes:
    count = len(distinct.values)
    slice_count = max(1, (count - 1).bit_length()) if count else _SLICES_WITHOUT_VALUES
    slices = [*map(encode_bitmap, slices_of(distinct.rows, distinct.codes, slice_count))]
    existing = encode_bitmap(bitmap_of(distinct.rows))
    places, offset = [], 0
    for content in slices:
        places.append(struct.pack(">ii", offset, len(content)))
        offset += len(content)
    places_length = sum(map(len, places))
    head = struct.pack(">bbii", FORMAT_VERSION, slice_count, len(existing), places_length)
    head = b"".join([head, *places])
    return b"".join([struct.pack(">i", len(head)), head, existing, *slices])


def _read_slices(cursor: ByteCursor, row_count: int) -> BitSlices:
    head = _read_head(cursor)
    count = head.int8()
    if not 0 <= count <= _MOST_SLICES:
        raise head.error(f"the number of bit slices cannot be {count}")
    existing_length = head.count("bytes of existing rows")
    head.count("bytes of offsets")
    existing = read_rows(cursor.part(cursor.position, existing_length), row_count)
    start = cursor.position + existing_length
    slices = []
    for _ in range(count):
        offset, length = head.count("bytes before a slice"), head.count("bytes of slice")
        slices.append(read_rows(cursor.part(start + offset, length), row_count))
    return BitSlices(existing, tuple(slices))


def _read_head(cursor: ByteCursor) -> ByteCursor:
    """Read length and version of the head at the cursor, and return a new cursor at its fields.

    The given cursor is moved to the first byte after the head.
    """
    length = cursor.count("bytes of head")
    head = cursor.part(cursor.position, length)
    cursor.take(length)
    head.version(FORMAT_VERSION)
    return head
