# SPDX-License-Identifier: Apache-2.0
"""Murmur3 x86-32 over many values at once.

The constants are those of the algorithm. Arithmetic is modulo 2**32, and the result is a signed
number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.types.arrow_memory import null_mask, spans
from lakeformat.types.unaligned import Bytes, Positions, Words

__all__ = ["Lockstep", "finish", "hash_bytes", "hash_longs", "mix_into"]

_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ADD = 0xE6546B64
_MASK = 0xFFFFFFFF
_BLOCK = 1 << 16
_WORD_BYTES = 4


def hash_longs(values: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the Murmur3 hash of the eight little-endian bytes of each number, with seed 0."""
    state = Lockstep(len(values), 0)
    state.mix(values.view(np.uint64))
    return finish(state.lanes, 8)


def hash_bytes(array: pa.Array) -> NDArray[np.int32]:
    """Return the Murmur3 hash of each value of a string or binary array, with seed 0.

    The hash of a null is arbitrary.
    """
    words, starts, sizes = spans(array, null_mask(array))
    # Longest values first, so that the values that still have words are always the first rows.
    order = np.argsort(-sizes, kind="stable")
    starts, sizes = starts[order], sizes[order]
    state = Lockstep(len(array), 0)
    whole = sizes // _WORD_BYTES
    for word in range(int(whole.max(initial=0))):
        active = int(np.searchsorted(-whole, -word))
        state.mix_half(_half(words, starts[:active] + _WORD_BYTES * word))
    rest = (sizes % _WORD_BYTES * 8).astype(np.uint32)
    ends = _half(words, starts + _WORD_BYTES * whole)
    state.mix_end(ends & ((np.uint32(1) << rest) - np.uint32(1)))
    found = np.empty(len(array), np.int32)
    found[order] = finish(state.lanes, sizes)
    return found


def _half(words: Words, at: Positions) -> NDArray[np.uint32]:
    """Return the four bytes that start at each byte position in ``at``, as little-endian integers.

    ``words`` are 64-bit words that contain the bytes without gaps.
    """
    place, shift = at >> 3, ((at & 7) << 3).view(np.uint64)
    # numpy gives 0 for a shift by 64.
    both: Words = (words[place] >> shift) | (words[place + 1] << (np.uint64(64) - shift))
    return both.astype(np.uint32)


class Lockstep:
    """The unfinished hashes of many rows; each step mixes one word into each row.

    A step with fewer words than rows changes only the first rows.
    """

    __slots__ = ("_scratch", "_word", "lanes")

    def __init__(self, rows: int, start: int) -> None:
        self.lanes = np.full(rows, start, np.uint32)
        self._word = np.empty(rows, np.uint32)
        self._scratch = np.empty(rows, np.uint32)

    def mix(self, words: NDArray[np.uint64] | NDArray[np.uint32]) -> None:
        """Mix one 64-bit word into each of the first ``len(words)`` rows.

        Words of 32 bits are taken as 64-bit words whose upper half is zero.
        """
        if words.dtype == np.uint32:
            self.mix_half(words.view(np.uint32))
            self._stir(len(words))  # a zero upper half needs only this step
        else:
            halves = np.ascontiguousarray(words).view(np.uint32)
            self.mix_half(halves[0::2])
            self.mix_half(halves[1::2])

    def mix_half(self, half: NDArray[np.uint32]) -> None:
        """Mix one 32-bit word into each of the first ``len(half)`` rows."""
        self.mix_end(half)
        self._stir(len(half))

    def mix_end(self, rest: NDArray[np.uint32]) -> None:
        """Mix at most three last bytes, padded with zeros, into each of the first ``len(rest)``
        rows.
        """
        rows = len(rest)
        word = self._word[:rows]
        np.multiply(rest, np.uint32(_C1), out=word)
        _rotate(word, 15, self._scratch[:rows])
        word *= np.uint32(_C2)
        self.lanes[:rows] ^= word

    def _stir(self, rows: int) -> None:
        lanes = self.lanes[:rows]
        _rotate(lanes, 13, self._scratch[:rows])
        lanes *= np.uint32(5)
        lanes += np.uint32(_ADD)


def mix_into(lane: int, data: Bytes) -> int:
    """Return the unfinished hash ``lane`` after mixing in the bytes of one row.

    The bytes are padded with zeros to whole 64-bit words.
    """
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        words = np.zeros((len(block) + 7) // 8 * 2, np.uint32)
        words.view(np.uint8)[: len(block)] = block
        words *= np.uint32(_C1)
        _rotate(words, 15, np.empty_like(words))
        words *= np.uint32(_C2)
        for word in words.tolist():
            lane ^= word
            lane = ((lane << 13 | lane >> 19) * 5 + _ADD) & _MASK
    return lane


def finish(lanes: NDArray[np.uint32], size: int | Positions) -> NDArray[np.int32]:
    """Return the hashes of rows after all words were mixed; ``size`` is the size of a row in bytes.

    ``lanes`` is overwritten.
    """
    lanes ^= np.uint32(size) if isinstance(size, int) else size.astype(np.uint32)
    lanes ^= lanes >> np.uint32(16)
    lanes *= np.uint32(0x85EBCA6B)
    lanes ^= lanes >> np.uint32(13)
    lanes *= np.uint32(0xC2B2AE35)
    lanes ^= lanes >> np.uint32(16)
    return lanes.view(np.int32)


def _rotate(words: NDArray[np.uint32], bits: int, scratch: NDArray[np.uint32]) -> None:
    np.right_shift(words, np.uint32(32 - bits), out=scratch)
    words <<= np.uint32(bits)
    words |= scratch
