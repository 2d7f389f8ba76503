# SPDX-License-Identifier: Apache-2.0
"""The deleted rows of one data file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64, FrozenBitMap64

from lakeformat.errors import InvalidRequestError

__all__ = ["DeletionVector", "keep_mask"]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The 0-based positions of the deleted rows in one data file."""

    positions: FrozenBitMap64

    @classmethod
    def of(cls, positions: Iterable[int] | npt.NDArray[np.int64]) -> DeletionVector:
        """Return a vector of positions in any order; repeated positions count once.

        Raise ``InvalidRequestError`` for a position that is negative or needs more than 64 bits.
        """
        if isinstance(positions, np.ndarray):
            if len(positions) and positions.min() < 0:
                raise InvalidRequestError(
                    f"a deletion vector cannot have position {positions.min()}: the first row has "
                    "position 0; leave negative positions out"
                )
            # pyroaring reads an array.array much faster than any other sequence.
            values = array("Q")
            values.frombytes(positions.astype(np.uint64).tobytes())
            positions = values
        try:
            return cls(FrozenBitMap64(positions))
        except OverflowError:
            raise InvalidRequestError(
                "a deletion vector has a position that is negative or needs more than 64 bits: "
                "positions count the rows of a data file from 0"
            ) from None

    @classmethod
    def of_parts(cls, parts: Iterable[npt.NDArray[np.int64]]) -> DeletionVector:
        """Return a vector of the positions of all parts; only one part is in memory at a time."""
        found = BitMap64()
        for positions in parts:
            found |= cls.of(positions).positions
        return cls(FrozenBitMap64(found))

    @property
    def cardinality(self) -> int:
        """Return the number of deleted rows."""
        return len(self.positions)

    def to_numpy(self) -> npt.NDArray[np.int64]:
        """Return all positions, ascending. The array may be large even if the vector is small."""
        return np.asarray(self.positions.to_array()).astype(np.int64)

    def merged(self, other: DeletionVector) -> DeletionVector:
        """Return a vector with the rows that are deleted in this one, in ``other`` or in both."""
        return DeletionVector(self.positions | other.positions)


def keep_mask(vector: DeletionVector, start: int, count: int) -> npt.NDArray[np.bool_]:
    """Return a mask of ``count`` rows from row ``start`` of the file on: True for rows not
    deleted.
    """
    mask = np.ones(count, dtype=bool)
    gone = vector.positions & BitMap64(range(start, start + count))
    mask[np.asarray(gone.to_array()).astype(np.int64) - start] = False
    return mask
