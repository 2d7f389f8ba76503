# SPDX-License-Identifier: Apache-2.0
"""Sorts rows by 64-bit words, such as those of ``key_words``.

One sort is enough if all words and the position of a row fit in one 64-bit number. Otherwise, rows
that are equal in the first bits are sorted again by the words that are left, one word after the
other. Rows whose words are all equal keep the order of their positions.

numpy's stable sort merges runs that are already sorted; its quicksort makes no use of such runs.
Both give the same order. ``_fastest_sort`` chooses by the number of falls: places where a number is
less than the number before it. Each cell of the table has the nanoseconds per number, first of the
stable sort, then of quicksort. The columns are arrays of three sizes (AMD EPYC, numpy 2.4.6):

| falls | 65,536 | 1,048,576 | 4,194,304 |
|---|---|---|---|
| 0 | 0.3, 35 | 0.3, 49 | 0.3, 57 |
| 4 | 9, 43 | 8, 54 | 8, 60 |
| 16 | 16, 44 | 15, 55 | 15, 61 |
| 64 | 24, 46 | 21, 54 | 22, 61 |
| 256 | 27, 35 | 28, 53 | 28, 61 |

Most merges have few runs, and merging these is faster on every processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.key_words import KeyWord, Words

__all__ = ["sort_by_words", "sort_roughly"]

Kind: TypeAlias = Literal["stable", "quicksort"]

_WORD_BITS = 64
_DIGIT_BITS = 0x0F0F0F0F0F0F0F0F
"""The bits in which the digits 0 to 9 can differ, in each byte of a word of text."""
_WIDE = 20
"""A column of words with more bits than this is searched for bits that are equal in all values."""
MOST_FALLS = 64
"""The largest number of falls for which numpy's stable sort is used.

With more falls, quicksort is used. A fall is a place where a number is less than the number before
it.
"""
_SAMPLE = 256
"""About this many values are searched first for differing bits. All values are searched only if the
sample shows that some bits are equal.
"""


def sort_by_words(words: Iterator[KeyWord], rows: int) -> KeyGroups:
    """Return the positions of rows sorted by their words; rows with equal words are one group."""
    position_bits = max(rows - 1, 0).bit_length()
    head, rest = _pack(words, _WORD_BITS - position_bits)
    if head is None:  # all rows are equal
        return KeyGroups(np.arange(rows), np.zeros(min(rows, 1), np.int64))
    order, is_first = _sort_beside_positions(head, position_bits)
    for word in rest:
        if is_first.all():
            break
        _refine(order, is_first, word)
    return KeyGroups(order, np.flatnonzero(is_first))


def sort_roughly(words: Iterator[KeyWord], rows: int) -> Positions:
    """Return the positions of rows sorted by the first bits of their words.

    The compared bits and the position of a row share one 64-bit number. Rows that are equal in
    these bits keep their order.
    """
    position_bits = max(rows - 1, 0).bit_length()
    head, _ = _pack(words, _WORD_BITS - position_bits)
    if head is None:
        return np.arange(rows)
    order, _ = _sort_beside_positions(head, position_bits)
    return order


def _pack(words: Iterator[KeyWord], room: int) -> tuple[Words | None, Iterator[KeyWord]]:
    """Return one word of at most ``room`` bits for each row, and the words left to sort by.

    The word has the first bits of ``words``. It is None if all rows are equal.
    """
    head: Words | None = None
    for word in words:
        values = word(None)
        if not len(values):
            break
        squeezed, bits = _squeeze(values)
        if bits == 0:
            continue
        taken = min(bits, room)
        part = squeezed >> np.uint64(bits - taken) if taken < bits else squeezed
        head = part if head is None else (head << np.uint64(taken)) | part
        room -= taken
        if taken < bits:
            return head, chain([word], words)
        if room == 0:
            return head, words
    return head, iter(())


def _squeeze(values: Words) -> tuple[Words, int]:
    """Return smaller numbers that sort as ``values`` do, and the number of bits that they need.

    The number of bits is 0 if all values are equal.
    """
    least = values.min()
    bits = int(values.max() - least).bit_length()
    if bits > _WIDE and _differing(values[:: len(values) // _SAMPLE + 1]).bit_count() < bits:
        differing = _differing(values)
        if differing.bit_count() < bits:
            return _pick_bits(values, differing)
    return values - least, bits


def _differing(values: Words) -> int:
    """Return a mask of the bits that are not the same in all values."""
    return int(np.bitwise_or.reduce(values) ^ np.bitwise_and.reduce(values))


def _pick_bits(values: Words, differing: int) -> tuple[Words, int]:
    """Return each value reduced to its bits in ``differing``, and the number of bits left.

    Values that differ only in the lower half of each byte, such as texts of digits, are reduced by
    ``_pick_digits`` instead.
    """
    if differing & _DIGIT_BITS == differing:
        return _pick_digits(values, differing)
    picked = np.zeros(len(values), np.uint64)
    at = done = 0
    while differing >> at:
        if not differing >> at & 1:
            at += 1
            continue
        width = ((~(differing >> at)) & (differing >> at) + 1).bit_length() - 1
        part = (values >> np.uint64(at)) & np.uint64((1 << width) - 1)
        picked |= part << np.uint64(done)
        at, done = at + width, done + width
    return picked, done


def _pick_digits(values: Words, differing: int) -> tuple[Words, int]:
    """Return smaller values that sort as ``values`` do, and the number of bits of the largest one.

    The smaller values are made from the lower half of each byte. The halves are moved together in
    steps of two, four and eight bytes. Halves at the end that are equal in all values are dropped,
    and the smallest value is subtracted.
    """
    picked = values & np.uint64(_DIGIT_BITS)
    for shift, mask in ((4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF), (16, 0xFFFFFFFF)):
        picked |= picked >> np.uint64(shift)
        picked &= np.uint64(mask)
    equal_at_end = ((differing & -differing).bit_length() - 1) // 8
    picked >>= np.uint64(4 * equal_at_end)
    picked -= picked.min()
    return picked, int(picked.max()).bit_length()


def _sort_beside_positions(values: Words, position_bits: int) -> tuple[Positions, Mask]:
    """Return the positions sorted by ``values``, and a mask of the first position of each value.

    Value and position are sorted as one number, which is several times faster than sorting
    positions by value. ``values`` is overwritten.
    """
    packed = np.left_shift(values, np.uint64(position_bits), out=values)
    packed |= np.arange(len(values), dtype=np.uint64)
    packed.sort(kind=_fastest_sort(packed))
    order = (packed & np.uint64((1 << position_bits) - 1)).view(np.int64)
    packed >>= np.uint64(position_bits)
    return order, _differs_from_before(packed)


def _fastest_sort(values: Words) -> Kind:
    """Return ``stable``, which merges sorted runs, if ``values`` has at most ``MOST_FALLS`` falls.

    Otherwise return ``quicksort``, which is then the faster kind of numpy's sort.
    """
    falls = int(np.count_nonzero(values[1:] < values[:-1]))
    return "stable" if falls <= MOST_FALLS else "quicksort"


def _differs_from_before(values: Words) -> Mask:
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return is_first


def _refine(order: Positions, is_first: Mask, word: KeyWord) -> None:
    """Sort each group of rows by one more word; ``order`` and ``is_first`` are changed in place.

    The rows of a group are equal in all earlier words. ``is_first`` marks the first row of each
    group.
    """
    is_tied = ~is_first
    is_tied[:-1] |= ~is_first[1:]
    places = np.flatnonzero(is_tied)
    rows, starts = order[places], is_first[places]
    values = word(rows)
    splits = _differs_from_before(values) & ~starts
    if not splits.any():
        return
    by_value = np.lexsort((values, np.cumsum(starts)))
    order[places] = rows[by_value]
    is_first[places] |= _differs_from_before(values[by_value])
