# SPDX-License-Identifier: Apache-2.0
"""Searches the keys of equality deletes for many rows at once.

Each key has the highest sequence number of the deletes that contain it. A row with this key is
deleted if the sequence number of its data file is lower. As in Java, null equals null, NaN equals
NaN, and -0.0 differs from 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.murmur import hash_bytes
from lakeformat.rows.prune import Mask
from lakeformat.types.arrow_memory import array_of, null_mask, numbers

__all__ = ["EqualityKeys", "comparable"]

_Words = npt.NDArray[np.uint64]
_Positions = npt.NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_OF_NULL = np.uint64(0xA0761D6478BD642F)
_SHIFT = np.uint64(32)
_BITS = 64
_MOST_AT_A_PLACE = 32
"""The largest number of keys that may share their first bits in an index of plain numbers.

If more keys share them, all keys are indexed by hash. That happens, for example, if a few keys are
far away from the rest.
"""
_GREATEST = np.uint64(2**64 - 1)
_PLACES_PER_KEY = 8
"""The table ``_WordIndex._known`` has at least this many entries for each distinct word.

So it rejects most words that no key has: about seven of eight, or more.
"""


class EqualityKeys:
    """The keys of equality deletes with the same columns, sorted by a word of 64 bits.

    In general the word is a hash, and a row is compared with each key that has the same hash. Keys
    of a single column without nulls need no comparison if they are numbers, times or booleans of at
    most 64 bits: then different keys have different words.
    """

    def __init__(self, columns: Sequence[pa.Array], sequence_numbers: _Positions) -> None:
        """Build the index from the columns of all keys.

        ``sequence_numbers`` has the sequence number of each key; none is negative.
        """
        keys = [comparable(column) for column in columns]
        self._spread: _Spread | None = None
        self._is_exact = _is_exact(keys)
        if self._is_exact:  # one of the equal keys is enough
            words = _words(keys[0])
            spread = _Spread.of(words)
            order, numbers = _highest(spread(words), sequence_numbers)
            index = _WordIndex(spread(words[order]))
            if index.most_at_a_place <= _MOST_AT_A_PLACE:
                self._spread = spread
            else:
                hashes = _hashes(keys)
                order, numbers = _highest(hashes, sequence_numbers)
                index = _WordIndex(hashes[order])
        else:
            hashes = _hashes(keys)
            # Of equal keys the one with the highest sequence number comes first.
            order = np.lexsort((-sequence_numbers, hashes))
            numbers = sequence_numbers[order]
            index = _WordIndex(hashes[order])
        self._index = index
        self._numbers = numbers
        self._columns = [] if self._is_exact else [key.take(array_of(order)) for key in keys]

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
        found = np.full(len(columns[0]), -1, np.int64)
        rows, numbers = self.matches(columns)
        found[rows] = numbers
        return found

    def matches(self, columns: Sequence[pa.Array]) -> tuple[_Positions, _Positions]:
        """Return the positions of the rows that equal a key, and the sequence numbers of the keys.

        The second array has, for each row in the first one, the sequence number of its key.
        """
        rows = [comparable(column) for column in columns]
        if self._is_exact:
            return self._exact_matches(rows[0])
        left, places = self._index.first_places(_hashes(rows))
        found: list[tuple[_Positions, _Positions]] = []
        while len(left):
            # Numbers do not rise among keys of one hash, so the first equal key has the highest
            # number.
            is_same = self._equal(rows, left, places)
            found.append((left[is_same], self._numbers[places[is_same]]))
            left, places = left[~is_same], places[~is_same]
            has_next = self._index.has_next(places)
            left, places = left[has_next], places[has_next] + 1
        found.append((left, places))  # both are empty now
        matched, numbers = (np.concatenate(each) for each in zip(*found, strict=True))
        return matched, numbers

    def _exact_matches(self, column: pa.Array) -> tuple[_Positions, _Positions]:
        words = _words(column) if self._spread else _hashes([column])
        inside: _Positions | None = None
        if self._spread is not None:
            words, is_inside = self._spread.within(words)
            if not is_inside.all():
                inside = np.flatnonzero(is_inside)
                words = words[inside]
        left, places = self._index.first_places(words)
        left = left if inside is None else inside[left]
        if (nulls := null_mask(column)) is not None:
            is_value = ~nulls[left]
            left, places = left[is_value], places[is_value]
        return left, self._numbers[places]

    def _equal(self, rows: Sequence[pa.Array], left: _Positions, places: _Positions) -> Mask:
        mask = np.ones(len(left), np.bool_)
        asked, keys = array_of(left), array_of(places)
        for row, key in zip(rows, self._columns, strict=True):
            found, wanted = row.take(asked), key.take(keys)
            both_null = pc.and_(pc.is_null(found), pc.is_null(wanted))
            equal = pc.or_(pc.fill_null(pc.equal(found, wanted), False), both_null)
            mask &= equal.to_numpy(zero_copy_only=False)
        return mask


def _highest(words: _Words, sequence_numbers: _Positions) -> tuple[_Positions, _Positions]:
    """Return, for each distinct word, the position of one key and the highest sequence number of
    all keys with this word.

    Both arrays are in ascending order of the words.
    """
    order: _Positions = np.argsort(words)
    ordered = words[order]
    starts = np.flatnonzero(np.append(len(ordered) > 0, ordered[1:] != ordered[:-1]))
    if not len(starts):
        return order, sequence_numbers
    highest: _Positions = np.maximum.reduceat(sequence_numbers[order], starts)
    return order[starts], highest


@dataclass(frozen=True, slots=True)
class _Spread:
    """Scales words so that their range fills 64 bits; their order as signed numbers is kept.

    Rows that are sorted by key are then looked up from the start of the index to its end. That is
    much faster than look-ups at random places.
    """

    least: np.uint64
    range: np.uint64
    """The greatest word minus the least."""
    shift: np.uint64

    @classmethod
    def of(cls, words: _Words) -> _Spread:
        """Return the spread for the range from the least to the greatest of ``words``."""
        signed = words.view(np.int64)
        least, most = (signed.min(), signed.max()) if len(words) else (np.int64(0), np.int64(0))
        size = (int(most) - int(least)).bit_length()
        return cls(
            np.uint64(int(least) % 2**_BITS),
            np.uint64(int(most) - int(least)),
            np.uint64(_BITS - max(size, 1)),
        )

    def within(self, words: _Words) -> tuple[_Words, Mask]:
        """Return scaled words, and a mask of the words in the range; all other scaled words are
        meaningless.
        """
        offsets = words - self.least
        mask: Mask = offsets <= self.range
        offsets <<= self.shift
        return offsets, mask

    def __call__(self, words: _Words) -> _Words:
        """Return scaled words; the given words must be in the range."""
        spread: _Words = (words - self.least) << self.shift
        return spread


class _WordIndex:
    """Sorted words of keys, with duplicates, and tables that find a word by its first bits."""

    def __init__(self, words: _Words) -> None:
        is_first = np.ones(len(words), np.bool_)
        is_first[1:] = words[1:] != words[:-1]
        self._is_last = np.append(is_first[1:], True)
        self._first: _Positions = np.flatnonzero(is_first)
        unique = words[self._first]
        self._unique = np.append(unique, _GREATEST)  # the last one ends each search
        self._known_shift = _shift(len(unique) * _PLACES_PER_KEY)
        self._known = np.zeros(1 << (_BITS - int(self._known_shift)), np.bool_)
        self._known[_index(unique >> self._known_shift)] = True
        self._start_shift = _shift(len(unique) * 2)
        counts = np.bincount(
            _index(unique >> self._start_shift), minlength=1 << (_BITS - int(self._start_shift))
        )
        self._starts = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=self._starts[1:])
        self.most_at_a_place = int(counts.max())
        """The largest number of words with the same first bits."""

    def first_places(self, words: _Words) -> tuple[_Positions, _Positions]:
        """Search for ``words``, and return two arrays for those that this index contains.

        The first array has their indexes in ``words``. The second array has their positions in this
        index. If the index contains a word more than once, that is the first position.
        """
        # One look into a table is enough for nearly all rows with an unknown word.
        rows: _Positions = np.flatnonzero(self._known.take(_index(words >> self._known_shift)))
        wanted = words[rows]
        at = self._starts.take(_index(wanted >> self._start_shift)).astype(np.int64)
        found = self._unique[at]
        behind = np.flatnonzero(found < wanted)
        while len(behind):
            at[behind] += 1
            found[behind] = self._unique[at[behind]]
            behind = behind[found[behind] < wanted[behind]]
        is_known = (found == wanted) & (at < len(self._first))
        return rows[is_known], self._first[at[is_known]]

    def has_next(self, places: _Positions) -> Mask:
        """Return a mask of ``places``: True if the next position has the same word."""
        mask: Mask = ~self._is_last[places]
        return mask


def _index(words: _Words) -> _Positions:
    """Return words below 2**63 as signed integers, by which numpy can index without a copy."""
    return words.view(np.int64)


def _shift(places: int) -> np.uint64:
    """Return the right shift by which a 64-bit hash becomes an index into a table with at least
    ``places`` entries.
    """
    return np.uint64(_BITS - max(places, 2).bit_length())


def _is_exact(columns: Sequence[pa.Array]) -> bool:
    """Return True if different keys always have different words of 64 bits.

    That is the case for a single column without nulls, of numbers, times or booleans of at most 64
    bits.
    """
    if len(columns) != 1 or columns[0].null_count:
        return False
    kind = columns[0].type
    is_word = pa.types.is_boolean(kind) or (pa.types.is_primitive(kind) and kind.bit_width <= 64)
    return is_word and not pa.types.is_decimal(kind)


def comparable(column: pa.Array) -> pa.Array:
    """Return a column of floating-point numbers as their bits, with a single form of NaN.

    Return any other column unchanged.
    """
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    plain = pc.if_else(pc.is_nan(column), nan, column)
    return plain.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _hashes(columns: Sequence[pa.Array]) -> _Words:
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found ^= _words(column)
        found *= _MIX
        found ^= found >> _SHIFT
    return found


def _words(column: pa.Array) -> _Words:
    """Return a word of 64 bits for each value: the value itself if it fits, else a hash.

    Equal values have equal words.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _OF_NULL)
    if pa.types.is_decimal(kind):
        halves = numbers(column)
        words = halves[:, 0] ^ (halves[:, 1] * _MIX)
    elif _is_bytes(kind):
        words = hash_bytes(column.cast(pa.binary())).astype(np.int64).view(np.uint64)
    else:
        words = numbers(column).astype(np.int64, copy=False).view(np.uint64)
    nulls = null_mask(column)
    return words if nulls is None else np.where(nulls, _OF_NULL, words)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)
