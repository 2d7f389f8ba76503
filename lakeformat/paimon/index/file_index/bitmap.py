# SPDX-License-Identifier: Apache-2.0
"""The index ``bitmap``: for each value of a column, the rows that have it.

Version 1 has one list of all values. Version 2 has a list with the first value of each block, then
the blocks of sorted values. Each value has the offset of its bitmap. A value in a single row has no
bitmap; its offset is negative: ``-1 - row``.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lakeformat.errors import InvalidRequestError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.roaring import bitmap_of, encode_bitmap
from lakeformat.paimon.file_index_types import INDEXABLE
from lakeformat.paimon.index.file_index.container import REBUILD
from lakeformat.paimon.index.file_index.integers import Column, require_type
from lakeformat.paimon.index.file_index.packed_values import PackedValues
from lakeformat.paimon.index.file_index.row_positions import read_row_count, read_rows, rows_but
from lakeformat.paimon.index.file_index.stored_values import (
    DistinctValues,
    Key,
    distinct_values,
    keys_equal_to,
    read_key,
)
from lakeformat.types.count_text import counted
from lakeformat.types.types import AtomicType, DataType

__all__ = ["BITMAP", "BitmapIndex", "encode_bitmap_index", "read_bitmap_index"]

BITMAP = "bitmap"
DEFAULT_VERSION = 2
DEFAULT_BLOCK_SIZE = 16 * 1024

_INT_BYTES = 4
_NO_LENGTH = -1
"""The bitmap length that is stored for a value with a single row: it has no bitmap."""
_LARGEST_INT32 = 2**31 - 1


def encode_bitmap_index(
    column: Column,
    data_type: DataType,
    *,
    version: int = DEFAULT_VERSION,
    block_size: int = DEFAULT_BLOCK_SIZE,
) -> bytes:
    """Return the index of a column; ``block_size`` is the size of a block of version 2, in bytes.

    Raise UnsupportedError if the index does not support the data type. Raise InvalidRequestError
    for a version other than 1 and 2, or if the bitmaps take more than 2 GiB.
    """
    data_type = require_type(data_type, INDEXABLE[BITMAP], BITMAP)
    if version not in (1, 2):
        raise InvalidRequestError(
            f"a bitmap index has version 1 or 2, not {version}: set "
            "'file-index.bitmap.<column>.version' to 1 or 2"
        )
    distinct = distinct_values(column, data_type)
    nulls = distinct.null_rows
    null_bitmap = encode_bitmap(bitmap_of(nulls))
    body = [null_bitmap] if len(nulls) > 1 else []
    offsets, lengths = _add_bitmaps(distinct, body)
    head = struct.pack(">bii?", version, distinct.row_count, len(distinct.values), len(nulls) > 0)
    if len(nulls):
        head += struct.pack(">i", -1 - int(nulls[0]) if len(nulls) == 1 else 0)
    if len(nulls) and version == 2:
        # The size of the bitmap. A single row has no bitmap, so its size is not stored.
        head += struct.pack(">i", len(null_bitmap))
    if version == 2:
        entries = distinct.values.joined(offsets, lengths)
        values = _encode_blocks(distinct.values, entries, block_size)
    else:
        entries = distinct.values.joined(offsets)
        values = [entries.bytes_of(0, len(entries))]
    return b"".join([head, *values, *body])


def read_bitmap_index(body: bytes, data_type: DataType, source: str) -> BitmapIndex:
    """Read the index of a column, of version 1 or 2; ``source`` names the index in errors.

    Raise CorruptTableError for a damaged index or an unknown version. Raise UnsupportedError if the
    index does not support the data type.
    """
    data_type = require_type(data_type, INDEXABLE[BITMAP], BITMAP)
    cursor = ByteCursor(body, source, remedy=REBUILD)
    version = cursor.version(1, 2)
    row_count = read_row_count(cursor)
    value_count = cursor.count("values")
    null_offset = cursor.int32() if cursor.flag() else None
    if version == 2 and null_offset is not None:
        cursor.int32()
    read_list = _read_block_list if version == 2 else _read_whole_list
    values = read_list(cursor, data_type, value_count)
    return BitmapIndex(data_type, row_count, null_offset, values, cursor)


@dataclass(frozen=True, slots=True, eq=False)
class BitmapIndex:
    """Finds the rows with a value; for TIMESTAMP(7) and finer, the rows that may have it."""

    data_type: AtomicType
    row_count: int
    _null_offset: int | None
    _values: _WholeList | _BlockList
    _bitmaps: ByteCursor

    def equal_to(self, value: object) -> BitMap:
        """Return the rows whose value equals ``value``; none if ``value`` is None."""
        return self.one_of([value])

    def one_of(self, values: Sequence[object]) -> BitMap:
        """Return the rows whose value equals one of ``values``; None equals nothing."""
        found = BitMap()
        for offset in self._values.offsets_of(keys_equal_to(values, self.data_type)):
            found |= self._rows_at(offset)
        return found

    def is_null(self) -> BitMap:
        """Return the rows whose value is null."""
        return BitMap() if self._null_offset is None else self._rows_at(self._null_offset)

    def is_not_null(self) -> BitMap:
        """Return the rows whose value is not null."""
        return rows_but(self.is_null(), self.row_count)

    def _rows_at(self, offset: int) -> BitMap:
        start = self._bitmaps.position
        if offset >= 0:
            return read_rows(self._bitmaps.at(start + offset), self.row_count)
        if -1 - offset >= self.row_count:
            raise self._bitmaps.error(
                f"it names row {-1 - offset}, counted from 0, but the data file has only "
                f"{counted(self.row_count, 'row')}"
            )
        return BitMap([-1 - offset])


@dataclass(frozen=True, slots=True, eq=False)
class _WholeList:
    """The values of an index of version 1: each value with its offset, in any order."""

    offsets: dict[Key, int]

    def offsets_of(self, keys: list[Key]) -> Iterator[int]:
        return (self.offsets[key] for key in keys if key in self.offsets)


@dataclass(frozen=True, slots=True, eq=False)
class _BlockList:
    """The values of an index of version 2: blocks of sorted values.

    A block is read only if a wanted value may be in it.
    """

    data_type: AtomicType
    first_keys: list[Any]
    starts: list[int]
    blocks: ByteCursor

    def offsets_of(self, keys: list[Key]) -> Iterator[int]:
        """Yield the offset of each of the sorted ``keys`` that exists; each block is read once."""
        numbers = [bisect_right(self.first_keys, key) - 1 for key in keys]
        for number, some in groupby(zip(numbers, keys, strict=True), key=itemgetter(0)):
            if number >= 0:
                offsets = self._read(number)
                yield from (offsets[key] for _, key in some if key in offsets)

    def _read(self, number: int) -> dict[Key, int]:
        block = self.blocks.at(self.blocks.position + self.starts[number])
        count = block.count("values in a block")
        return _read_entries(block, self.data_type, count, with_lengths=True)


def _read_whole_list(cursor: ByteCursor, data_type: AtomicType, count: int) -> _WholeList:
    return _WholeList(_read_entries(cursor, data_type, count, with_lengths=False))


def _read_block_list(cursor: ByteCursor, data_type: AtomicType, count: int) -> _BlockList:
    """Read the list of blocks, and skip the blocks; afterwards the cursor is at the bitmaps.

    ``count`` is the number of values in all blocks.
    """
    first_keys, starts = [], []
    for _ in range(cursor.count("blocks", at_most=count)):
        first_keys.append(read_key(cursor, data_type))
        starts.append(cursor.count("bytes before a block"))
    total = cursor.count("bytes of blocks")
    blocks = cursor.part(cursor.position, total)
    cursor.take(total)
    return _BlockList(data_type, first_keys, starts, blocks)


def _read_entries(
    cursor: ByteCursor, data_type: AtomicType, count: int, *, with_lengths: bool
) -> dict[Key, int]:
    """Return the offset of each value.

    With ``with_lengths``, the length of a bitmap follows each offset. It is skipped, because a
    bitmap contains its own length.
    """
    offsets: dict[Key, int] = {}
    for _ in range(count):
        key = read_key(cursor, data_type)
        offsets[key] = cursor.int32()
        if with_lengths:
            cursor.int32()
    return offsets


def _add_bitmaps(distinct: DistinctValues, body: list[bytes]) -> tuple[PackedValues, PackedValues]:
    """Append the bitmaps of values with several rows to ``body``.

    Return the offset and the length of each value's bitmap, in the order of the values. A value in
    a single row has no bitmap; its offset is ``-1 - row``. Raise InvalidRequestError if the bitmaps
    take more than 2 GiB.
    """
    counts = np.bincount(distinct.codes, minlength=len(distinct.values))
    by_value = distinct.rows[np.argsort(distinct.codes, kind="stable")]
    ends = np.cumsum(counts)
    offsets = -1 - by_value[ends - counts]
    lengths = np.full(len(counts), _NO_LENGTH)
    position = sum(map(len, body))
    for value in np.flatnonzero(counts > 1).tolist():
        rows = by_value[ends[value] - counts[value] : ends[value]]
        body.append(encode_bitmap(bitmap_of(rows)))
        offsets[value], lengths[value] = position, len(body[-1])
        position += len(body[-1])
    if position > _LARGEST_INT32:
        raise InvalidRequestError(
            "the bitmap index of a column takes more than 2 GiB in one data file, which its format "
            "cannot address: remove the column from 'file-index.bitmap.columns', or lower "
            "'target-file-size'"
        )
    return _as_int32(offsets), _as_int32(lengths)


def _as_int32(numbers: npt.NDArray[np.int64]) -> PackedValues:
    return PackedValues.of_integers(numbers, _INT_BYTES)


def _encode_blocks(values: PackedValues, entries: PackedValues, block_size: int) -> list[bytes]:
    """Return the parts of the index in order: the list of blocks, then each block.

    The list of blocks has the first value and the offset of each block.
    An entry larger than ``block_size`` gets its own block.
    """
    blocks: list[bytes] = []
    heads: list[bytes] = []
    first, offset = 0, 0
    while first < len(entries):
        room = entries.offsets[first] + block_size - _INT_BYTES
        end = int(bisect_right(entries.offsets, room)) - 1
        end = max(end, first + 1)
        heads.append(values.bytes_of(first, first + 1) + struct.pack(">i", offset))
        blocks.append(struct.pack(">i", end - first) + entries.bytes_of(first, end))
        offset += len(blocks[-1])
        first = end
    return [struct.pack(">i", len(blocks)), *heads, struct.pack(">i", offset), *blocks]
