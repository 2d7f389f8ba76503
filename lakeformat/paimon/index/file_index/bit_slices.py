# SPDX-License-Identifier: Apache-2.0
"""Stores one number for each row as one bitmap per bit, so that a comparison takes a few operations
on bitmaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lakeformat.files.roaring import bitmap_of

__all__ = ["BitSlices", "slices_of"]


def slices_of(
    rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], count: int
) -> list[BitMap]:
    """Return a bitmap for each of the lowest ``count`` bits, the lowest bit first.

    Each bitmap has the rows whose number has this bit.
    """
    return [bitmap_of(rows[(numbers >> bit) & 1 == 1]) for bit in range(count)]


@dataclass(frozen=True, slots=True)
class BitSlices:
    """Numbers from 0 on, one per row; bitmap i has the rows whose number has bit i."""

    existing: BitMap
    """The rows that have a number."""
    slices: tuple[BitMap, ...]

    def equal_to(self, number: int) -> BitMap:
        return self._compare(number)[1]

    def less_than(self, number: int) -> BitMap:
        return self._compare(number)[0]

    def at_most(self, number: int) -> BitMap:
        less, equal, _ = self._compare(number)
        return less | equal

    def greater_than(self, number: int) -> BitMap:
        return self._compare(number)[2]

    def at_least(self, number: int) -> BitMap:
        _, equal, greater = self._compare(number)
        return equal | greater

    def _compare(self, number: int) -> tuple[BitMap, BitMap, BitMap]:
        """Return the rows with a number lower than, equal to and higher than ``number``.

        This is the algorithm of O'Neil and Quass, from the highest bit down.
        """
        if number < 0:
            return BitMap(), BitMap(), BitMap(self.existing)
        if number.bit_length() > len(self.slices):
            return BitMap(self.existing), BitMap(), BitMap()
        less, equal, greater = BitMap(), BitMap(self.existing), BitMap()
        for bit in reversed(range(len(self.slices))):
            ones = self.slices[bit]
            if number >> bit & 1:
                less |= equal - ones
                equal &= ones
            else:
                greater |= equal & ones
                equal -= ones
        return less, equal, greater
