# SPDX-License-Identifier: Apache-2.0
"""Indexes of rows on a Hilbert curve: neighbours on the curve are neighbours in every column.

The algorithm is by John Skilling ("Programming the Hilbert curve", 2004). It is applied to many
rows at the same time. First the rotations are undone bit by bit, then the Gray code is applied.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakeformat.rows.curves import ByteRows, Words, words_of, z_order

__all__ = ["hilbert", "hilbert_index"]

HILBERT_BITS = 63
"""The number of leading bits of each column that determine the index."""
_ROWS_AT_ONCE = 1 << 13
"""The number of rows that fit into the processor's cache during hundreds of passes over them."""


def hilbert(columns: Sequence[ByteRows]) -> ByteRows:
    """Return the Hilbert index of each row; each column is given as bytes that sort like its
    values.
    """
    points = np.stack([words_of(column[:, :8])[:, 0] for column in columns], axis=1)
    return hilbert_index(points >> np.uint64(64 - HILBERT_BITS), HILBERT_BITS)


def hilbert_index(points: Words, bits: int) -> ByteRows:
    """Return the index of each point (a row of ``points``) with coordinates of ``bits`` bits."""
    rows, dimensions = points.shape
    found = np.empty((rows, -(-dimensions * bits // 8)), np.uint8)
    for start in range(0, rows, _ROWS_AT_ONCE):
        piece = slice(start, start + _ROWS_AT_ONCE)
        transposed = _transposed(points[piece].T.copy(), bits) << np.uint64(64 - bits)
        columns = [axis.astype(">u8").view(np.uint8).reshape(-1, 8) for axis in transposed]
        found[piece] = z_order(columns)[:, : found.shape[1]]
    return found


def _transposed(axes: Words, bits: int) -> Words:
    """Return the Hilbert indexes of points, with the bits of each index spread over the dimensions.

    ``axes`` has a row per dimension and a column per point; it is changed in place.
    """
    first = axes[0]
    is_set, swapped = np.empty_like(first), np.empty_like(first)
    for bit in range(bits - 1, 0, -1):
        below = np.uint64((1 << bit) - 1)
        _spread_bit(axes[0], bit, below, is_set)
        first ^= is_set
        for axis in axes[1:]:
            # If the bit is set, the first axis is inverted; otherwise both axes are swapped.
            _spread_bit(axis, bit, below, is_set)
            np.bitwise_xor(first, axis, out=swapped)
            np.bitwise_and(swapped, is_set ^ below, out=swapped)
            axis ^= swapped
            first ^= swapped
            first ^= is_set
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    flipped = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        _spread_bit(axes[-1], bit, np.uint64((1 << bit) - 1), is_set)
        flipped ^= is_set
    axes ^= flipped
    return axes


def _spread_bit(numbers: Words, bit: int, below: np.uint64, out: Words) -> None:
    """Write ``below`` into ``out`` where bit number ``bit`` of ``numbers`` is set, else 0."""
    np.right_shift(numbers, np.uint64(bit), out=out)
    np.bitwise_and(out, np.uint64(1), out=out)
    np.multiply(out, below, out=out)
