# SPDX-License-Identifier: Apache-2.0
"""The hash of rows: Murmur3 x86-32 with seed 42 over their bytes without the frame.

All rows are hashed at once: the first word of each, then the second, and so on. The constants are
those of the algorithm; arithmetic is modulo 2**32 and the result is a signed number.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from lakeformat.paimon.binary_row.column_parts import (
    MASKS,
    ItemTail,
    Offset,
    RowParts,
    Slot,
    WideTail,
)
from lakeformat.types.unaligned import Bytes, Positions, WordReader, Words

__all__ = ["hash_parts", "hash_row"]

_SEED = 42
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ADD = 0xE6546B64
_MASK = 0xFFFFFFFF

# For fewer rows, a Python loop over each is faster than numpy steps over all.
_FEW = 16
_BLOCK = 1 << 16


def hash_row(row: bytes) -> int:
    """Return the signed hash of one row."""
    lane = _continue(_SEED, np.frombuffer(row, np.uint8))
    return int(_finish(np.array([lane], np.uint32), len(row))[0])


def hash_parts(parts: RowParts) -> NDArray[np.int32]:
    """Return the hash of each row."""
    shared = _shared_start(parts.header)
    state = _Lockstep(parts.rows, _continue(_SEED, shared.view(np.uint8)))
    for words in (*parts.header[len(shared) :], *parts.slots):
        state.mix(words if isinstance(words, np.ndarray) else np.full(parts.rows, words, np.uint64))
    for tail in parts.tails:
        if isinstance(tail, WideTail):
            for item_word in tail.words:
                state.mix(item_word)
        else:
            _mix_items(state, tail)
    return _finish(state.lanes, parts.end)


def _shared_start(header: list[int | Words]) -> Words:
    """Return the first words if all rows share them, so that they are mixed only once."""
    return np.array(list(takewhile(lambda word: isinstance(word, int), header)), np.uint64)


class _Lockstep:
    """The unfinished hash of each row, mixed in place."""

    __slots__ = ("_scratch", "_word", "lanes")

    def __init__(self, rows: int, start: int) -> None:
        self.lanes = np.full(rows, start, np.uint32)
        self._word = np.empty(rows, np.uint32)
        self._scratch = np.empty(rows, np.uint32)

    def mix(self, words: Slot) -> None:
        """Mix 64-bit words into the first rows, one word into each."""
        if words.dtype == np.uint32:
            self._mix_half(words.view(np.uint32))
            self._stir(len(words))  # a zero upper half needs only this step
        else:
            halves = np.ascontiguousarray(words).view(np.uint32)
            self._mix_half(halves[0::2])
            self._mix_half(halves[1::2])

    def _mix_half(self, half: NDArray[np.uint32]) -> None:
        rows = len(half)
        word = self._word[:rows]
        np.multiply(half, np.uint32(_C1), out=word)
        _rotate(word, 15, self._scratch[:rows])
        word *= np.uint32(_C2)
        self.lanes[:rows] ^= word
        self._stir(rows)

    def _stir(self, rows: int) -> None:
        lanes = self.lanes[:rows]
        _rotate(lanes, 13, self._scratch[:rows])
        lanes *= np.uint32(5)
        lanes += np.uint32(_ADD)


def _mix_items(state: _Lockstep, tail: ItemTail) -> None:
    """Mix items, longest first, so that rows with words left are always the first rows."""
    counts = (tail.sizes + 7) >> 3
    longest = int(counts.max(initial=0))
    if longest == 0:
        return
    if counts.min() == longest:
        _mix_descending(state, tail.source, tail.starts, tail.sizes)
        return
    narrow = np.uint8 if longest <= 0xFF else np.uint16 if longest <= 0xFFFF else np.int64
    order = np.argsort((longest - counts).astype(narrow), kind="stable")
    lanes = state.lanes
    state.lanes = lanes[order]
    _mix_descending(state, tail.source, tail.starts[order], tail.sizes[order])
    lanes[order] = state.lanes
    state.lanes = lanes


def _mix_descending(state: _Lockstep, source: Words, starts: Positions, sizes: Positions) -> None:
    remaining = -((sizes + 7) >> 3)
    active, done = int(np.searchsorted(remaining, 0)), 0
    reader = WordReader(source, starts[:active])
    while active > _FEW:
        content = reader.read(active)
        going_on = int(np.searchsorted(remaining[:active], -(done + 1)))
        # Bytes after an item in its last word belong to other items; a row has zeros there.
        ended = slice(going_on, active)
        content[ended] &= MASKS[sizes[ended] - 8 * done]
        state.mix(content)
        active, done = going_on, done + 1
    for row in range(active):
        rest = source.view(np.uint8)[starts[row] + 8 * done : starts[row] + sizes[row]]
        state.lanes[row] = _continue(int(state.lanes[row]), rest)


def _continue(lane: int, data: Bytes) -> int:
    """Mix the bytes of one row, padded with zeros to whole 64-bit words."""
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


def _rotate(words: NDArray[np.uint32], bits: int, scratch: NDArray[np.uint32]) -> None:
    np.right_shift(words, np.uint32(32 - bits), out=scratch)
    words <<= np.uint32(bits)
    words |= scratch


def _finish(lanes: NDArray[np.uint32], size: Offset) -> NDArray[np.int32]:
    lanes ^= np.uint32(size) if isinstance(size, int) else size.astype(np.uint32)
    lanes ^= lanes >> np.uint32(16)
    lanes *= np.uint32(0x85EBCA6B)
    lanes ^= lanes >> np.uint32(13)
    lanes *= np.uint32(0xC2B2AE35)
    lanes ^= lanes >> np.uint32(16)
    return lanes.view(np.int32)
