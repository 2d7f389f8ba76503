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
_BITS = 64
_GREATEST = np.uint64(2**64 - 1)
_PLACES_PER_KEY = 8
"""The least number of entries, for each known hash, in the table that is asked first. So at most
one in eight rows with an unknown hash passes it.
"""


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
        self._hashes = _HashIndex(hashes[order])
        self._numbers = sequence_numbers[order]
        self._columns = [key.take(array_of(order)) for key in keys]
        self._is_exact = _is_exact(keys)

    def __len__(self) -> int:
        return len(self._numbers)

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
        left, places = self._hashes.first_places(hashes)
        if self._is_exact and _is_exact(rows):  # equal hashes are those of equal keys
            found[left] = self._numbers[places]
            return found
        while len(left):
            # Numbers do not rise among keys of one hash, so the first equal key has the highest
            # number.
            is_same = self._equal(rows, left, places)
            found[left[is_same]] = self._numbers[places[is_same]]
            left, places = left[~is_same], places[~is_same]
            has_next = self._hashes.has_next(places)
            left, places = left[has_next], places[has_next] + 1
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


class _HashIndex:
    """Sorted hashes of keys, with duplicates, and tables that find a hash by its first bits."""

    def __init__(self, hashes: _Hashes) -> None:
        is_first = np.ones(len(hashes), np.bool_)
        is_first[1:] = hashes[1:] != hashes[:-1]
        self._is_last = np.append(is_first[1:], True)
        self._first: _Positions = np.flatnonzero(is_first)
        unique = hashes[self._first]
        self._unique = np.append(unique, _GREATEST)  # the last one ends each search
        self._known_shift = _shift(len(unique) * _PLACES_PER_KEY)
        self._known = np.zeros(1 << (_BITS - int(self._known_shift)), np.bool_)
        self._known[unique >> self._known_shift] = True
        self._start_shift = _shift(len(unique))
        starts = np.zeros((1 << (_BITS - int(self._start_shift))) + 1, np.int32)
        places = (unique >> self._start_shift).astype(np.int64)
        np.cumsum(np.bincount(places, minlength=len(starts) - 1), out=starts[1:])
        self._starts = starts

    def first_places(self, hashes: _Hashes) -> tuple[_Positions, _Positions]:
        """Return the numbers of the rows whose hash is known and, for each of them, the position of
        the first occurrence of its hash in the sorted hashes.
        """
        # One look into a table is enough for nearly all rows with an unknown hash.
        rows: _Positions = np.flatnonzero(self._known[hashes >> self._known_shift])
        wanted = hashes[rows]
        at = self._starts[wanted >> self._start_shift].astype(np.int64)
        behind = np.flatnonzero(self._unique[at] < wanted)
        while len(behind):
            at[behind] += 1
            behind = behind[self._unique[at[behind]] < wanted[behind]]
        is_known = (self._unique[at] == wanted) & (at < len(self._first))
        return rows[is_known], self._first[at[is_known]]

    def has_next(self, places: _Positions) -> Mask:
        """Return a mask of the positions that the same hash follows once more."""
        mask: Mask = ~self._is_last[places]
        return mask


def _shift(places: int) -> np.uint64:
    """Return the right shift by which a 64-bit hash becomes an index into a table with at least
    ``places`` entries.
    """
    return np.uint64(_BITS - max(places, 2).bit_length())


def _is_exact(columns: Sequence[pa.Array]) -> bool:
    """Return True if different keys always have different hashes: keys of one column of at most 64
    bits, without nulls.
    """
    if len(columns) != 1 or columns[0].null_count:
        return False
    kind = columns[0].type
    is_word = pa.types.is_boolean(kind) or (pa.types.is_primitive(kind) and kind.bit_width <= 64)
    return is_word and not pa.types.is_decimal(kind)


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
