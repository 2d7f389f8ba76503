# SPDX-License-Identifier: Apache-2.0
"""Columns as unsigned 64-bit words with the same order as their values, to sort rows quickly.

Words are computed one after the other, when they are needed: usually the first words decide the
order, and the remaining bytes of long texts are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.groups import Mask, Positions
from lakeformat.types.arrow_memory import byte_spans, null_mask, numbers, spans
from lakeformat.types.unaligned import Bytes

__all__ = ["KeyWord", "Words", "column_words"]

Words: TypeAlias = npt.NDArray[np.uint64]

KeyWord: TypeAlias = Callable[[Positions | None], Words]
"""A function that returns one word of each row at the given positions; None means all rows."""

_SIGN = np.uint64(1 << 63)
_WORD_BYTES = 8
LARGEST = 2**63 - 1


def column_words(column: pa.ChunkedArray | pa.Array) -> Iterator[KeyWord]:
    """Yield the words of a column, the most significant first.

    Nulls come first. Numbers are ordered by size, with -0.0 before 0.0, and NaN last. Texts and
    binaries are ordered by their unsigned bytes. Equal values have equal words.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    nulls = null_mask(array)
    if nulls is not None:
        yield _as_word((~nulls).astype(np.uint64))
    if _is_text(array.type):
        yield from _text_words(array, nulls)
        return
    for word in _number_words(array):
        if nulls is not None:
            word = np.where(nulls, np.uint64(0), word)
        yield _as_word(word)


def _as_word(words: Words) -> KeyWord:
    return lambda rows: words if rows is None else words[rows]


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return any(test(kind) for test in tests)


def _number_words(array: pa.Array) -> Sequence[Words]:
    kind = array.type
    if len(array) == 0:
        return [np.zeros(0, np.uint64)]
    if pa.types.is_boolean(kind):
        return [numbers(array).astype(np.uint64)]
    if pa.types.is_floating(kind):
        return [_float_words(numbers(array))]
    if pa.types.is_decimal128(kind):
        halves = numbers(array)
        return [halves[:, 1] ^ _SIGN, np.ascontiguousarray(halves[:, 0])]
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return [_signed_words(numbers(array))]
    ranks = pc.rank(array, sort_keys="ascending", null_placement="at_start", tiebreaker="dense")
    return [ranks.to_numpy().astype(np.uint64)]


def _signed_words(values: npt.NDArray[np.generic]) -> Words:
    words: Words = values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN
    return words


def _float_words(values: npt.NDArray[np.generic]) -> Words:
    wide = values.astype(np.float64)
    raw = np.where(np.isnan(wide), np.nan, wide).view(np.uint64)
    # Invert all bits of a negative number, so that larger numbers get larger words; flip the sign
    # bit of all others.
    words: Words = raw ^ np.where(raw >= _SIGN, ~np.uint64(0), _SIGN)
    return words


def _text_words(array: pa.Array, nulls: Mask | None) -> Iterator[KeyWord]:
    """Yield one word for each eight bytes of the texts, from the first byte on.

    Texts are padded with zeros. So a text that ends with a zero byte may have the same words as a
    shorter text. In this case one more word follows: the size of the text in bytes.
    """
    raw, starts, ends = byte_spans(array)
    sizes = ends - starts
    if nulls is None and len(sizes) and (sizes == sizes[0]).all():
        yield from _even_text_words(raw, starts, int(sizes[0]))
        return
    data, starts, sizes = spans(array, nulls)
    longest, shortest = int(sizes.max(initial=0)), int(sizes.min(initial=LARGEST))
    for place in range(0, longest, _WORD_BYTES):
        yield _TextWord(data, starts, sizes, place, place + _WORD_BYTES <= shortest)
    # Words are padded with zeros, so only a text that ends with a zero can equal a shorter one.
    if _some_end_with_zero(data, starts, sizes):
        yield _as_word(sizes.astype(np.uint64))


def _even_text_words(data: Bytes, starts: Positions, size: int) -> Iterator[KeyWord]:
    """Yield the words of ``_text_words`` for adjacent texts that are all ``size`` bytes long."""
    if 0 < size < _WORD_BYTES:  # the word of the last text extends past its end
        data = np.append(data[: starts[-1] + size], np.zeros(_WORD_BYTES, np.uint8))
    for place in range(0, size, _WORD_BYTES):
        # The last bytes are read together with bytes before them; the shift removes those.
        read_at = min(place, max(size - _WORD_BYTES, 0))
        shape, first = (len(starts),), int(starts[0]) + read_at
        words: Words = np.ndarray(shape, ">u8", data, first, (size,)).astype(np.uint64)
        if read_at < place:
            words <<= np.uint64(8 * (place - read_at))
        elif size < _WORD_BYTES:
            words >>= np.uint64(8 * (_WORD_BYTES - size))
        yield _as_word(words)


class _TextWord:
    """The eight bytes of each text from the offset ``place`` on, with zeros after its end."""

    __slots__ = ("_data", "_is_full", "_place", "_sizes", "_starts")

    def __init__(
        self, data: Words, starts: Positions, sizes: Positions, place: int, is_full: bool
    ) -> None:
        self._data, self._starts, self._sizes = data, starts, sizes
        self._place, self._is_full = place, is_full

    def __call__(self, rows: Positions | None) -> Words:
        starts, sizes = self._starts, self._sizes
        if rows is not None:
            starts, sizes = starts[rows], sizes[rows]
        if self._is_full:
            return _big_endian(self._data, starts + self._place)
        left = sizes - self._place
        # A text that has already ended is read at its start, where readable bytes exist.
        words: Words = _big_endian(self._data, starts + np.where(left > 0, self._place, 0))
        unused = (np.clip(_WORD_BYTES - left, 0, _WORD_BYTES) << 3).view(np.uint64)
        words >>= unused  # numpy gives 0 for a shift by 64
        words <<= unused
        return words


def _big_endian(data: Words, starts: Positions) -> Words:
    at = starts >> 3
    shift = ((starts & 7) << 3).view(np.uint64)
    words: Words = (data[at] >> shift) | (data[at + 1] << (np.uint64(64) - shift))
    return words.byteswap(inplace=True)


def _some_end_with_zero(data: Words, starts: Positions, sizes: Positions) -> bool:
    ends = (starts + sizes - 1)[sizes > 0]
    last = (data[ends >> 3] >> ((ends & 7) << 3).view(np.uint64)) & np.uint64(0xFF)
    return bool((last == 0).any())
