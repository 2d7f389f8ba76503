# SPDX-License-Identifier: Apache-2.0
"""Joins the encoded fields of many records, piece by piece.

A piece has one number or one byte string for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lakeformat.types.unaligned import Positions, Words, at_every_byte, move_bytes

__all__ = [
    "BytesPiece",
    "Piece",
    "WordPiece",
    "encode_groups",
    "join_words",
    "list_pieces",
    "number_pieces",
    "write_pieces",
]

Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]
Sizes: TypeAlias = int | Positions
"""The size of a piece in each record, in bytes; a single number if it is the same in all."""

_WORD_BYTES = 8
_SPILL = _WORD_BYTES - 1
"""Bytes are copied in whole words, so up to this many bytes after a piece are overwritten."""

_GROUP_ROWS = 4096
"""The number of records that are encoded together: few enough bytes for the CPU cache."""

_BITS_IN_WORD = 56
_LARGEST_IN_WORD = np.uint64(1 << _BITS_IN_WORD)
_ALL_CONTINUE = np.uint64(0x8080808080808080)
# Groups of 56, 28 and 14 bits, the upper half of each moved up by 4, 2 and 1 bits.
_SPREADS = [
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x00FFFFFFF0000000), np.uint64(4)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x0FFFC0000FFFC000), np.uint64(2)),
    (np.uint64(0x007F007F007F007F), np.uint64(0x3F803F803F803F80), np.uint64(1)),
]
_CONTINUES = np.array(
    [sum(0x80 << 8 * byte for byte in range(size - 1)) for size in range(9)], np.uint64
)


@dataclass(frozen=True, slots=True)
class WordPiece:
    """Up to 8 bytes of every record as a number, the lowest byte first.

    Bytes beyond the size of a record's piece are zero. ``most`` is the largest size in bytes.
    """

    words: Words
    sizes: Sizes
    most: int


@dataclass(frozen=True, slots=True)
class BytesPiece:
    """A byte string of every record, as a range of a buffer.

    The buffer must be readable for 8 bytes beyond each range.
    """

    data: NDArray[np.uint8]
    starts: Positions
    sizes: Sizes


Piece: TypeAlias = WordPiece | BytesPiece


def encode_groups(
    rows: int, pieces_of: Callable[[slice], Iterable[Piece]]
) -> tuple[NDArray[np.uint8], Positions]:
    """Return the bytes of all records, one after the other, and the end offset of each record.

    ``rows`` is the number of records. ``pieces_of`` returns the pieces of the records in a slice,
    in the order of their fields.
    """
    parts, ends, size = [], [], 0
    for first in range(0, rows, _GROUP_ROWS):
        group = slice(first, min(first + _GROUP_ROWS, rows))
        data, group_ends = write_pieces(
            join_words(list(pieces_of(group))), group.stop - group.start
        )
        parts.append(data[: group_ends[-1]])
        ends.append(group_ends + size)
        size += int(group_ends[-1])
    if not parts:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    return np.concatenate(parts), np.concatenate(ends)


def number_pieces(numbers: Numbers, present: Mask | None = None) -> list[Piece]:
    """Return the pieces of one zig-zag number for each record.

    Records where ``present`` is False get no bytes; None means that every record has a number.
    """
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    most = zigzag.max(initial=0)
    if most >= _LARGEST_IN_WORD:
        return _long_numbers(zigzag, present)
    if most < 0x80:
        words: Words = zigzag
        sizes: Sizes = 1
    else:
        words, sizes = _spread(zigzag, int(most))
    if present is not None:
        words, sizes = np.where(present, words, np.uint64(0)), np.where(present, sizes, 0)
    return [WordPiece(words, sizes, max((int(most).bit_length() + 6) // 7, 1))]


def list_pieces(
    counts: Positions, present: Mask | None, items: Callable[[], Iterable[Piece]]
) -> list[Piece]:
    """Return the pieces of one list for each record: the number of items, the items, and a closing
    zero.

    An empty list is only the zero. ``counts`` are the lengths of the lists. ``items`` returns the
    pieces of all items, list after list. Records where ``present`` is False get no bytes; None
    means that every record has a list.
    """
    pieces = number_pieces(counts, present)
    if not counts.any():
        return pieces
    last = np.cumsum(counts)
    data, ends = write_pieces(join_words(list(items())), int(last[-1]))
    bounds = np.concatenate(([0], ends))
    starts = bounds[last - counts]
    pieces.append(BytesPiece(data, starts, bounds[last] - starts))
    filled = counts > 0
    zeros = np.zeros(len(counts), np.uint64)
    pieces.append(WordPiece(zeros, 1 if filled.all() else filled.astype(np.int64), 1))
    return pieces


def join_words(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with adjacent words joined where both fit into 8 bytes.

    This saves time and changes no written byte.
    """
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if (
            isinstance(piece, WordPiece)
            and isinstance(last, WordPiece)
            and last.most + piece.most <= _WORD_BYTES
        ):
            # A shift by all 64 bits cannot happen: the second piece has at least one byte.
            shift = np.uint64(8) * np.asarray(last.sizes, np.uint64)
            words = last.words | (piece.words << shift)
            joined[-1] = WordPiece(words, last.sizes + piece.sizes, last.most + piece.most)
        else:
            joined.append(piece)
    return joined


def write_pieces(pieces: Sequence[Piece], rows: int) -> tuple[NDArray[np.uint8], Positions]:
    """Return the bytes of all records and the end offset of each record.

    ``rows`` is the number of records. The array has 8 further bytes after the last record, so that
    8 bytes can be read at any offset of a record.
    """
    sizes = np.zeros(rows, np.int64)
    for piece in pieces:
        sizes += piece.sizes
    ends = np.cumsum(sizes)
    data = np.zeros((int(ends[-1]) if rows else 0) + _WORD_BYTES, np.uint8)
    places = ends - sizes
    least = [*map(_least, pieces)]
    after = sum(least)
    for piece, own in zip(pieces, least, strict=True):
        after -= own
        if isinstance(piece, WordPiece):
            _write_words(data, places, piece, may_spill=after + own >= _WORD_BYTES)
        else:
            _write_bytes(data, places, piece, may_spill=after >= _SPILL)
        places = places + piece.sizes
    return data, ends


def _least(piece: Piece) -> int:
    return piece.sizes if isinstance(piece.sizes, int) else int(piece.sizes.min(initial=0))


def _spread(zigzag: Words, most: int) -> tuple[Words, Sizes]:
    """Return zig-zag numbers as words with seven bits in each byte, and their sizes in bytes.

    The eighth bit of a byte marks that another byte of the number follows. ``most`` is the largest
    number.
    """
    words = zigzag
    for lower, upper, shift in _SPREADS:
        words = (words & lower) | ((words & upper) << shift)
    sizes = np.ones(len(words), np.int64)
    for bits in range(7, most.bit_length(), 7):
        sizes += zigzag >= np.uint64(1 << bits)
    return words | _CONTINUES[sizes], sizes


def _long_numbers(zigzag: Words, present: Mask | None) -> list[Piece]:
    """Return numbers of up to ten bytes as two pieces: the first eight bytes, and the bytes after
    them.
    """
    high = zigzag >> np.uint64(_BITS_IN_WORD)
    is_long = high > 0
    words, sizes = _spread(zigzag & (_LARGEST_IN_WORD - np.uint64(1)), int(_LARGEST_IN_WORD) - 1)
    words = np.where(is_long, words | _ALL_CONTINUE, words)
    sizes = np.where(is_long, _WORD_BYTES, sizes)
    rest, rest_sizes = _spread(high, 0xFF)
    rest_sizes = np.where(is_long, rest_sizes, 0)
    if present is not None:
        words, sizes = np.where(present, words, np.uint64(0)), np.where(present, sizes, 0)
        rest, rest_sizes = np.where(present, rest, np.uint64(0)), np.where(present, rest_sizes, 0)
    return [WordPiece(words, sizes, _WORD_BYTES), WordPiece(rest, rest_sizes, 2)]


def _write_words(
    data: NDArray[np.uint8], places: Positions, piece: WordPiece, *, may_spill: bool
) -> None:
    """Write the word of each record at its position.

    With ``may_spill`` all 8 bytes of a word are written. The next piece then overwrites the bytes
    that follow this piece.
    """
    if may_spill:
        at_every_byte(data, "u8")[places] = piece.words
        return
    every = np.arange(len(places))
    for byte in range(piece.most):
        rows = every if isinstance(piece.sizes, int) else np.flatnonzero(piece.sizes > byte)
        shifted = piece.words[rows] >> np.uint64(8 * byte)
        data[places[rows] + byte] = (shifted & np.uint64(0xFF)).astype(np.uint8)


def _write_bytes(
    data: NDArray[np.uint8], places: Positions, piece: BytesPiece, *, may_spill: bool
) -> None:
    sizes = np.broadcast_to(np.asarray(piece.sizes, np.int64), (len(places),))
    if not may_spill:
        move_bytes(data, places, piece.data, piece.starts, sizes)
        return
    into, words = at_every_byte(data, "u8"), at_every_byte(piece.data, "u8")
    starts, done, most = piece.starts, 0, int(sizes.max(initial=0))
    is_even = most == sizes.min(initial=most)
    while done < most:
        if not is_even:
            rows = np.flatnonzero(sizes > done)
            places, starts, sizes = places[rows], starts[rows], sizes[rows]
        into[places + done] = words[starts + done]
        done += _WORD_BYTES
