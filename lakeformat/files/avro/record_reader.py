# SPDX-License-Identifier: Apache-2.0
"""Reads the same field of many Avro records at once, and skips lists of numbers in one step.

A byte below 0x80 is the last byte of a number. So the position after any count of numbers is found
by counting such bytes, without decoding the numbers.

The start of a record may be guessed wrongly. Even then no byte outside of the buffer is read, and
no more memory is allocated than the values of the buffer can fill.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lakeformat.files.avro.avro_container import READABLE_AFTER
from lakeformat.files.avro.number_words import SHORT_NUMBERS, numbers_at
from lakeformat.files.avro.record_shape import Atom, AtomShape, ListShape, Shape
from lakeformat.types.unaligned import Bytes, Positions, at_every_byte

__all__ = ["ByteWindow", "FieldValues", "Lists", "Mask", "Numbers", "RecordReader", "Spans"]

Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]

_MOST_ITEMS = 4096
"""The largest length of a list of pairs of a number and a byte string, such as the bounds of
columns. Files with longer lists are read by the general decoder.
"""
_CONTINUES = np.uint16(0x8080)


@dataclass(frozen=True, slots=True)
class Spans:
    """Byte strings in ``data``: the start of each, and its size in bytes."""

    data: Bytes
    starts: Positions
    sizes: Positions


Flat: TypeAlias = "Numbers | Spans"


@dataclass(frozen=True, slots=True)
class Lists:
    """A list field of all records: the number of items in the list of each record, and the items
    of all these lists one after the other.

    An item is a value, or a pair of key and value.
    """

    counts: Positions
    items: tuple[Flat, ...]
    """One array with the values; for pairs two arrays, the keys and the values."""


@dataclass(frozen=True, slots=True)
class FieldValues:
    """One field of all records. A value is null where ``present`` is False; ``present=None`` means
    that no value is null.
    """

    content: Numbers | Spans | Lists
    present: Mask | None = None


class ByteWindow:
    """A range of the bytes of a file, and the ends of the numbers in it."""

    def __init__(self, data: Bytes, end: int) -> None:
        """Use the bytes of ``data`` before the offset ``end`` as values.

        ``READABLE_AFTER`` bytes from ``end`` on must be readable, and are never part of a value.
        """
        assert end + READABLE_AFTER <= len(data)
        self.data, self.end = data, end

    @cached_property
    def pairs(self) -> NDArray[np.uint16]:
        """The two bytes at each position, as one little-endian number."""
        return at_every_byte(self.data, "u2")

    @cached_property
    def stops(self) -> NDArray[np.int32]:
        """The position of each byte that is the last byte of a number."""
        return np.flatnonzero(self._is_stop).astype(np.int32)

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """For each position, the number of bytes before it that are the last byte of a number."""
        ranks = np.zeros(len(self._is_stop) + 1, np.int32)
        np.cumsum(self._is_stop, out=ranks[1:])
        return ranks

    @property
    def _is_stop(self) -> Mask:
        return self.data[: self.end + READABLE_AFTER] < 0x80


@dataclass(slots=True)
class RecordReader:
    """Reads field after field of many records; ``sound`` is False for a record that cannot be
    valid.
    """

    window: ByteWindow
    places: Positions
    """The current position in each record. Reading changes this array, so do not share it."""
    sound: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.sound = np.ones(len(self.places), np.bool_)

    def read(self, shape: Shape, keys: Collection[int] | None = None) -> FieldValues:
        """Read the next field of every record; ``shape`` is the form of the field.

        With ``keys``, only the pairs with these keys are returned from a list of pairs; None
        returns all.
        """
        if shape.null_branch is None:
            return FieldValues(self._read(shape, keys))
        branches = self._number()
        self.sound &= (branches == 0) | (branches == 1)
        present = branches != shape.null_branch
        if present.all():
            return FieldValues(self._read(shape, keys))
        rows = np.flatnonzero(present)
        part = self._at(rows)
        content = part._read(shape, keys)
        self._return(rows, part)
        return FieldValues(_spread(content, rows, len(present)), present)

    def finish(self) -> Mask:
        """Return True for each record that is sound and ends inside of the window."""
        return self.sound & (self.places <= self.window.end)

    def _read(self, shape: Shape, keys: Collection[int] | None) -> Numbers | Spans | Lists:
        if isinstance(shape, AtomShape):
            return self._atom(shape)
        counts = self._counts(_MOST_ITEMS if not shape.is_numbers else self.window.end)
        if shape.is_numbers:
            lists = self._number_lists(shape, counts, keys)
        else:
            lists = self._pairs(counts, keys)
        rows = np.flatnonzero(counts)
        if len(rows):
            part = self._at(rows)
            # A list may have a second block of items: the general decoder reads it.
            part.sound &= part._number() == 0
            self._return(rows, part)
        return lists

    def _atom(self, shape: AtomShape) -> Numbers | Spans:
        if shape.atom is Atom.NUMBER:
            return self._number()
        starts = self.places
        if shape.atom in (Atom.BYTES, Atom.TEXT):
            sizes = self._size()
            starts = self.places.copy()
            self.places += sizes
        else:
            starts = starts.copy()
            self.places += shape.size
            over = self.places > self.window.end
            self.sound &= ~over
            starts[over] = 0
            sizes = np.full(len(starts), min(shape.size, self.window.end), np.int64)
        if shape.atom is Atom.BOOLEAN:
            found = self.window.data.take(starts, mode="clip").astype(np.int64)
            self.sound &= found <= 1
            return found
        return Spans(self.window.data, starts, sizes)

    def _number(self) -> Numbers:
        """Read one number of every record, faster if all numbers have one byte."""
        data, end = self.window.data, self.window.end
        first = data.take(self.places, mode="clip")
        if first.max(initial=0) < 0x80:
            self.places += 1
            short: Numbers = SHORT_NUMBERS.take(first)
            return short
        numbers, sizes, too_long = numbers_at(data, np.minimum(self.places, end))
        self.sound[too_long] = False
        self.places += sizes
        return numbers

    def _size(self) -> Numbers:
        """Read a size in bytes of every record; ``sound`` becomes False if fewer bytes are left."""
        return self._within_room(self._number())

    def _within_room(self, sizes: Numbers) -> Numbers:
        wrong = (sizes < 0) | (sizes > self.window.end - self.places)
        if wrong.any():
            self.sound &= ~wrong
            sizes = np.where(wrong, 0, sizes)
            np.minimum(self.places, self.window.end, out=self.places)
        return sizes

    def _counts(self, most: int) -> Numbers:
        """Read the number of items of one list of every record.

        A negative number is followed by the size of the items in bytes, which is skipped. ``sound``
        becomes False for more items than ``most``.
        """
        counts = self._number()
        rows = np.flatnonzero(counts < 0)
        if len(rows):
            part = self._at(rows)
            part._number()
            self._return(rows, part)
            # The least number has no positive counterpart: it remains negative and fails the check.
            counts = np.abs(counts)
        counts = self._within_room(counts)
        self.sound &= counts <= most
        return np.where(self.sound, counts, 0)

    def _number_lists(
        self, shape: ListShape, counts: Numbers, keys: Collection[int] | None
    ) -> Lists:
        """Read one list of numbers, or of pairs of numbers, of every record.

        Only pairs with a key in ``keys`` are returned; None returns all.
        """
        window, width = self.window, len(shape.item)
        wanted = counts if width == 1 or keys is None or len(keys) else np.zeros_like(counts)
        first = window.ranks.take(self.places, mode="clip").astype(np.int64)
        after = first + counts * width
        over = after > len(window.stops)
        if over.any():
            self.sound &= ~over
            counts[over] = 0
            after[over] = first[over]
        filled = counts > 0
        ends = window.stops.take(after - 1, mode="clip").astype(np.int64) + 1
        self.places = np.where(filled, ends, self.places)
        rows = np.repeat(np.arange(len(counts)), wanted)
        before = np.cumsum(wanted) - wanted
        numbers = np.arange(len(rows)) - before[rows]
        at = first[rows] + numbers * width
        parts = [self._stopped(at, rows)]
        if width == 1:
            return Lists(wanted, tuple(parts))
        if keys is not None:
            kept = np.flatnonzero(np.isin(parts[0], list(keys)))
            rows, at = rows[kept], at[kept]
            parts, wanted = [parts[0][kept]], np.bincount(rows, minlength=len(counts))
        return Lists(wanted, (*parts, self._stopped(at + 1, rows)))

    def _stopped(self, ranks: Positions, rows: Positions) -> Numbers:
        """Return the numbers at the indexes ``ranks``; index 0 is the first number of the window.

        ``rows`` has, for each of these numbers, the index of its record. If a number is too long,
        ``sound`` of its record becomes False.
        """
        window = self.window
        places = np.where(ranks > 0, window.stops.take(ranks - 1, mode="clip") + 1, 0)
        first = window.data.take(places, mode="clip")
        if first.max(initial=0) < 0x80:
            short: Numbers = SHORT_NUMBERS.take(first)
            return short
        found, _, too_long = numbers_at(window.data, np.minimum(places, window.end))
        self.sound[rows[too_long]] = False
        return found

    def _pairs(self, counts: Numbers, keys: Collection[int] | None) -> Lists:
        """Read one list of pairs of every record: the first pair of each list, then the second, and
        so on.

        Only pairs with a key in ``keys`` are returned; None returns all.
        """
        kept = np.zeros(len(counts), np.int64)
        read: list[tuple[Positions, Positions, Numbers, Positions, Positions]] = []
        for number in range(int(counts.max(initial=0))):
            rows = np.flatnonzero((counts > number) & self.sound)
            part = self if len(rows) == len(counts) else self._at(rows)
            found, sizes = part._pair()
            starts = part.places.copy()
            part.places += sizes
            if part is not self:
                self._return(rows, part)
            if keys is not None:
                chosen = np.flatnonzero(np.isin(found, list(keys))) if len(keys) else rows[:0]
                rows, found = rows[chosen], found[chosen]
                starts, sizes = starts[chosen], sizes[chosen]
            read.append((rows, kept[rows], found, starts, sizes))
            kept[rows] += 1
        return self._in_order(kept, read)

    def _pair(self) -> tuple[Numbers, Positions]:
        """Read one pair of every record. Return the keys, and the sizes of the values in bytes."""
        both = self.window.pairs[np.minimum(self.places, self.window.end)]
        if (both & _CONTINUES).any():
            key = self._number()
            return key, self._size()
        self.places += 2
        sizes = SHORT_NUMBERS.take(both >> 8)
        return SHORT_NUMBERS.take(both & 0xFF), self._within_room(sizes)

    def _in_order(
        self,
        kept: Numbers,
        read: list[tuple[Positions, Positions, Numbers, Positions, Positions]],
    ) -> Lists:
        """Return the pairs in ``read`` ordered by list.

        ``read`` has the first pairs of all lists, then the second pairs, and so on. ``kept`` is the
        number of pairs of each list.
        """
        before = np.cumsum(kept) - kept
        keys, starts, sizes = (np.zeros(int(kept.sum()), np.int64) for _ in range(3))
        for rows, numbers, found, at, length in read:
            places = before[rows] + numbers
            keys[places], starts[places], sizes[places] = found, at, length
        return Lists(kept, (keys, Spans(self.window.data, starts, sizes)))

    def _at(self, rows: Positions) -> RecordReader:
        part = RecordReader(self.window, self.places[rows])
        part.sound = self.sound[rows]
        return part

    def _return(self, rows: Positions, part: RecordReader) -> None:
        self.places[rows] = part.places
        self.sound[rows] = part.sound


def _spread(
    content: Numbers | Spans | Lists, rows: Positions, count: int
) -> Numbers | Spans | Lists:
    """Return ``count`` values: ``content`` at the indexes ``rows``, elsewhere zeros or empty
    values.
    """

    def spread(values: Numbers) -> Numbers:
        wide = np.zeros(count, np.int64)
        wide[rows] = values
        return wide

    match content:
        case Spans():
            return Spans(content.data, spread(content.starts), spread(content.sizes))
        case Lists():
            return Lists(spread(content.counts), content.items)
    return spread(content)
