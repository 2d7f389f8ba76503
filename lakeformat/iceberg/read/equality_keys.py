# SPDX-License-Identifier: Apache-2.0
"""Searches the keys of equality deletes for many rows at once.

Each key has the highest sequence number of the deletes that contain it. A row with this key is
deleted if the sequence number of its data file is lower. As in Java, null equals null, NaN equals
NaN, and -0.0 differs from 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.murmur import hash_bytes
from lakeformat.rows.prune import Mask
from lakeformat.types.arrow_memory import array_of, null_mask, numbers

__all__ = ["EqualityKeys"]

_Hashes = npt.NDArray[np.uint64]
_Positions = npt.NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_OF_NULL = np.uint64(0xA0761D6478BD642F)
_SHIFT = np.uint64(32)


class EqualityKeys:
    """The keys of equality deletes with the same columns, sorted by hash.

    A row is compared with each key of the same hash.
    """

    def __init__(self, columns: Sequence[pa.Array], sequence_numbers: _Positions) -> None:
        """Build the index from the columns of all keys, and the sequence number of each key, 0 or
        more.
        """
        keys = [_comparable(column) for column in columns]
        hashes = _hashes(keys)
        # Of equal keys the one with the highest sequence number comes first.
        order: _Positions = np.lexsort((-sequence_numbers, hashes))
        self._hashes = hashes[order]
        self._numbers = sequence_numbers[order]
        self._columns = [key.take(array_of(order)) for key in keys]

    def __len__(self) -> int:
        return len(self._hashes)

    def deleted(self, columns: Sequence[pa.Array], sequence_number: int) -> Mask:
        """Return a mask of the rows to which a key with a higher sequence number applies.

        All rows have the ``sequence_number`` of their data file.
        """
        found: Mask = self.numbers(columns) > sequence_number
        return found

    def numbers(self, columns: Sequence[pa.Array]) -> _Positions:
        """Return for each row the sequence number of the key that equals it; -1 if no key does."""
        rows = [_comparable(column) for column in columns]
        hashes = _hashes(rows)
        found = np.full(len(hashes), -1, np.int64)
        # Sorted by hash, neighbouring rows search neighbouring keys, which are in the processor's
        # cache.
        left: _Positions = np.argsort(hashes)
        places = np.searchsorted(self._hashes, hashes[left])
        while len(left):
            there = places < len(self._hashes)
            left, places = left[there], places[there]
            same_hash = self._hashes[places] == hashes[left]
            left, places = left[same_hash], places[same_hash]
            # Numbers do not rise among keys of one hash, so the first equal key has the highest
            # number.
            is_same = self._equal(rows, left, places)
            found[left[is_same]] = self._numbers[places[is_same]]
            left, places = left[~is_same], places[~is_same] + 1
        return found

    def _equal(self, rows: Sequence[pa.Array], left: _Positions, places: _Positions) -> Mask:
        mask = np.ones(len(left), np.bool_)
        asked, keys = array_of(left), array_of(places)
        for row, key in zip(rows, self._columns, strict=True):
            found, wanted = row.take(asked), key.take(keys)
            both_null = pc.and_(pc.is_null(found), pc.is_null(wanted))
            equal = pc.or_(pc.fill_null(pc.equal(found, wanted), False), both_null)
            mask &= equal.to_numpy(zero_copy_only=False)
        return mask


def _comparable(column: pa.Array) -> pa.Array:
    """Return floating-point numbers as their bits, with a single form of NaN; else the column
    itself.
    """
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    plain = pc.if_else(pc.is_nan(column), nan, column)
    return plain.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _hashes(columns: Sequence[pa.Array]) -> _Hashes:
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found ^= _words(column)
        found *= _MIX
        found ^= found >> _SHIFT
    return found


def _words(column: pa.Array) -> _Hashes:
    """Return a hash for each value; equal values have equal hashes."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _OF_NULL)
    if pa.types.is_decimal(kind):
        halves = numbers(column)
        words = halves[:, 0] ^ (halves[:, 1] * _MIX)
    elif _is_bytes(kind):
        words = hash_bytes(column.cast(pa.binary())).astype(np.int64).view(np.uint64)
    else:
        words = numbers(column).astype(np.int64).view(np.uint64)
    nulls = null_mask(column)
    return words if nulls is None else np.where(nulls, _OF_NULL, words)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)
