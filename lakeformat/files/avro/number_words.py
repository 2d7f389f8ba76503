# SPDX-License-Identifier: Apache-2.0
"""Decodes Avro's zig-zag numbers, seven bits in each byte, at many positions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakeformat.types.unaligned import Bytes, Positions, Words, at_every_byte

__all__ = ["SHORT_NUMBERS", "numbers_at"]

SHORT_NUMBERS = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(256)], np.int64)
"""The decoded number of each possible byte, for numbers that are one byte long."""

_ONE = np.uint64(1)
_CONTINUES = np.uint64(0x8080808080808080)
_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
# Pairs of 7-, 14- and 28-bit groups, the upper one moved down by 1, 2 and 4 bits.
_COMPRESSIONS = [
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
]


def numbers_at(
    data: Bytes, places: Positions
) -> tuple[NDArray[np.int64], NDArray[np.uint8], Positions]:
    """Return three arrays: the number at each position in ``places``, the size of each number in
    bytes, and the indexes in ``places`` of invalid numbers, which have more than 64 bits.

    ``data`` must have ten bytes from each position on.
    """
    words = at_every_byte(data, "u8")[places]
    stops = ~words & _CONTINUES
    lowest = stops & -stops
    used = lowest | (lowest - _ONE)
    groups = words & used & _PAYLOAD
    for lower, upper, shift in _COMPRESSIONS:
        groups = (groups & lower) | ((groups & upper) >> shift)
    sizes = np.bitwise_count(used) >> 3
    endless = np.flatnonzero(stops == 0)
    too_long = _read_ninth_byte(data, places, endless, groups, sizes) if len(endless) else endless
    numbers = (groups >> _ONE).view(np.int64) ^ -(groups & _ONE).view(np.int64)
    return numbers, sizes, too_long


def _read_ninth_byte(
    data: Bytes, places: Positions, rows: Positions, groups: Words, sizes: NDArray[np.uint8]
) -> Positions:
    """Complete ``groups`` and ``sizes`` for the numbers of more than eight bytes.

    ``rows`` has the indexes of these numbers. Return the indexes of those with more than 64 bits,
    which are invalid.
    """
    ninth = data[places[rows] + 8].astype(np.uint64)
    tenth = data[places[rows] + 9].astype(np.uint64)
    has_tenth = ninth >= 0x80
    upper = np.where(has_tenth, tenth << np.uint64(63), np.uint64(0))
    groups[rows] |= ((ninth & np.uint64(0x7F)) << np.uint64(56)) | upper
    sizes[rows] = np.where(has_tenth, 10, 9)
    return rows[has_tenth & (tenth > 1)]
