# SPDX-License-Identifier: Apache-2.0
"""Reads, writes and moves many short byte ranges at any position of a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Positions", "WordReader", "Words", "at_every_byte", "move_bytes"]

Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
Positions: TypeAlias = NDArray[np.int64]

# numpy moves 32 bytes per row in the same time as 1 byte.
_WIDTHS = (1, 2, 4, 8, 16)
_WIDEST = 32

# Below this many rows, one slice per row is faster than numpy calls for all rows.
_FEW = 32


def at_every_byte(data: Bytes, code: str) -> NDArray[Any]:
    """Return a view without a copy: element ``i`` is the little-endian value that starts at byte
    ``i``.

    ``code`` is the numpy type of the values, such as ``u8``.
    """
    dtype = np.dtype(code).newbyteorder("<")
    count = max(len(data) - dtype.itemsize + 1, 0)
    return np.ndarray((count,), dtype, buffer=data, strides=(1,))


class WordReader:
    """Reads bytes at many positions of a buffer: each call reads the next 8 bytes at each position.

    The 8 bytes are assembled from two aligned words, which is several times faster than an
    unaligned read.
    """

    __slots__ = ("_at", "_down", "_last", "_up", "_words")

    def __init__(self, words: Words, starts: Positions) -> None:
        self._words = words
        self._at = starts >> 3
        self._down = ((starts & 7) << 3).view(np.uint64)
        self._up = np.uint64(64) - self._down
        self._last = words[self._at]

    def read(self, places: int) -> Words:
        """Read the next 8 bytes at the first ``places`` positions.

        ``places`` must not be larger than in the call before.
        """
        at = self._at[:places]
        at += 1
        following = self._words[at]
        # numpy gives 0 for a shift by 64.
        content: Words = (self._last[:places] >> self._down[:places]) | (
            following << self._up[:places]
        )
        self._last = following
        return content


def move_bytes(
    target: Bytes, to: Positions, source: Bytes, start: Positions, size: Positions
) -> None:
    """Copy byte ranges: ``size[i]`` bytes from ``source[start[i]]`` to ``target[to[i]]``.

    No byte of the target outside of these ranges changes.
    """
    pieces = _Pieces(target, to, source, start)
    for width in _WIDTHS:
        rows = np.flatnonzero((size >= width) & (size < 2 * width))
        pieces.move(rows, np.int64(0), width)
        if width > 1:
            # The first and last bytes overlap unless the size is twice the width.
            pieces.move(rows, size[rows] - width, width)
    rows = np.flatnonzero(size >= _WIDEST)
    pieces.move(rows, size[rows] - _WIDEST, _WIDEST)
    done = 0
    while len(rows) > _FEW:
        pieces.move(rows, np.int64(done), _WIDEST)
        done += _WIDEST
        rows = rows[size[rows] > done + _WIDEST]
    for row in rows.tolist():
        first, end = int(start[row]) + done, int(start[row] + size[row])
        place = int(to[row]) + done
        target[place : place + end - first] = source[first:end]


@dataclass(frozen=True, slots=True)
class _Pieces:
    target: Bytes
    to: Positions
    source: Bytes
    start: Positions

    def move(self, rows: Positions, skip: Positions | np.int64, width: int) -> None:
        """Copy ``width`` bytes of each range whose number is in ``rows``.

        The copy begins ``skip`` bytes after the start of the range.
        """
        if len(rows):
            content = at_every_byte(self.source, f"V{width}")[self.start[rows] + skip]
            at_every_byte(self.target, f"V{width}")[self.to[rows] + skip] = content
