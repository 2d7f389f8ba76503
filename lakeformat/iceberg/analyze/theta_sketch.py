# SPDX-License-Identifier: Apache-2.0
"""Theta sketches, which estimate numbers of distinct values, in the form of Apache DataSketches.

A sketch stores the hashes of all distinct values, up to 4096. With more, it keeps only the hashes
below a limit, theta. Theta is lowered until 4096 hashes are left, and the number of distinct values
is estimated from theta.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.rows.murmur128 import hash_to_long

__all__ = ["BLOB_TYPE", "ThetaSketch"]

BLOB_TYPE = "apache-datasketches-theta-v1"
"""The type of a Puffin blob that holds a theta sketch."""
_MOST = 4096
_SEED = 9001
_SEED_HASH = 0x93CC
_ALL = (1 << 63) - 1
"""The value of theta as long as all hashes are stored."""
_VERSION, _COMPACT_FAMILY = 3, 3
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 2, 4, 8, 16, 32


@dataclass(slots=True)
class ThetaSketch:
    """The theta sketch of one column; values are hashed as in Java."""

    _hashes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _theta: int = _ALL

    def add(self, values: pa.Array) -> None:
        """Add values, given as bytes in Iceberg's single-value form; nulls and empty values are
        ignored.
        """
        hashes = hash_to_long(values.drop_null(), _SEED)
        new = hashes[(hashes > 0) & (hashes < self._theta)]
        found = np.unique(np.concatenate([self._hashes, new]))
        if len(found) > _MOST:
            self._theta = int(found[_MOST])
            found = found[:_MOST]
        self._hashes = found

    @property
    def estimate(self) -> int:
        """The number of distinct values; a number above 4096 is an estimate."""
        if self._theta == _ALL:
            return len(self._hashes)
        return round(len(self._hashes) / (self._theta / _ALL))

    def to_bytes(self) -> bytes:
        """Return the sketch in the compact form that a Puffin file stores."""
        flags = _READ_ONLY | _COMPACT | _ORDERED
        count, has_theta = len(self._hashes), self._theta != _ALL
        if not count and not has_theta:
            return _head(1, flags | _EMPTY, seed_hash=0)
        hashes = self._hashes.astype("<i8").tobytes()
        if count == 1 and not has_theta:
            return _head(1, flags | _SINGLE) + hashes
        longs = 3 if has_theta else 2
        theta = struct.pack("<q", self._theta) if has_theta else b""
        return _head(longs, flags) + struct.pack("<if", count, 1.0) + theta + hashes


def _head(longs: int, flags: int, seed_hash: int = _SEED_HASH) -> bytes:
    return struct.pack("<BBBBBBH", longs, _VERSION, _COMPACT_FAMILY, 0, 0, flags, seed_hash)
