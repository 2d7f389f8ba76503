# SPDX-License-Identifier: Apache-2.0
"""Roaring bitmaps in their portable format, as Java writes and reads them."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lakeformat.files.byte_cursor import ByteCursor

__all__ = ["bitmap_of", "encode_bitmap", "read_bitmap", "skip_bitmap"]

_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_MOST_CONTAINERS = 1 << 16
_OFFSETS_FROM = 4
"""A bitmap with runs has offsets only if it has this number of containers or more; a bitmap without
runs always has offsets.
"""
_MOST_IN_ARRAY = 4096
_BITSET_BYTES = 8192


def bitmap_of(rows: npt.NDArray[np.int64]) -> BitMap:
    """Return a bitmap of row positions below 2^32."""
    # pyroaring reads an array.array ten times as fast as a numpy array.
    values = array("I")
    values.frombytes(rows.astype(np.uint32).tobytes())
    return BitMap(values)


def encode_bitmap(bitmap: BitMap) -> bytes:
    """Return a bitmap in the portable format, with runs where runs take fewer bytes, as in Java."""
    optimised = BitMap(bitmap)
    optimised.run_optimize()
    return optimised.serialize()


def read_bitmap(cursor: ByteCursor) -> BitMap:
    """Return the bitmap at the position of the cursor, and move the cursor behind it.

    Raise ``CorruptTableError`` for an invalid bitmap.
    """
    start = cursor.at(cursor.position)
    length = skip_bitmap(cursor)
    try:
        return BitMap.deserialize(bytes(start.take(length)))
    except ValueError as reason:
        raise start.error(f"the bitmap that starts here cannot be decoded: {reason}") from None


def skip_bitmap(cursor: ByteCursor) -> int:
    """Move the cursor behind the bitmap, and return the size of the bitmap in bytes.

    Raise ``CorruptTableError`` if the cursor is not at a complete bitmap.
    """
    start = cursor.position
    cookie = cursor.little_uint32()
    runs: npt.NDArray[np.bool_] | None = None
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(cursor.take((count + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little", count=count).astype(bool)
    elif cookie == _COOKIE:
        count = cursor.little_uint32()
    else:
        raise cursor.error(f"a Roaring bitmap cannot start with {cookie:#x}")
    if count > _MOST_CONTAINERS:
        raise cursor.error(
            f"the bitmap claims {count} containers, but at most {_MOST_CONTAINERS} are possible"
        )
    # Each container has its high 16 bits and its number of values less one.
    sizes = np.frombuffer(cursor.take(4 * count), "<u2")[1::2].astype(np.int64) + 1
    if runs is None or count >= _OFFSETS_FROM:
        cursor.take(4 * count)
    _skip_containers(cursor, sizes, runs)
    return cursor.position - start


def _skip_containers(
    cursor: ByteCursor, sizes: npt.NDArray[np.int64], runs: npt.NDArray[np.bool_] | None
) -> None:
    lengths = np.where(sizes > _MOST_IN_ARRAY, _BITSET_BYTES, 2 * sizes)
    if runs is None:
        cursor.take(int(lengths.sum()))
        return
    for length, has_runs in zip(lengths.tolist(), runs.tolist(), strict=True):
        cursor.take(4 * cursor.little_uint16() if has_runs else length)
