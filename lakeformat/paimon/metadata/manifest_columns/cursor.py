# SPDX-License-Identifier: Apache-2.0
"""Reads the same field of many Avro records at once, field after field.

A cursor has one position per record. The caller guesses where the records start. If a guess is
wrong, the values read from this position are meaningless. ``sound`` becomes False for some of the
wrong guesses; the caller must find the other wrong guesses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakeformat.files.avro.avro_container import READABLE_AFTER, NotPlainError
from lakeformat.files.avro.number_words import SHORT_NUMBERS, numbers_at
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Column,
    ListColumn,
    Mask,
    NumberColumn,
    Numbers,
    Positions,
)
from lakeformat.paimon.metadata.manifest_columns.shape import FieldShape

__all__ = ["Cursor"]

_FEW = 32
"""Up to this number of values, a list is faster than an array."""
_MOST_ITEMS = 4096
"""The largest number of items in a list that this reader decodes; wider tables need the general
decoder.
"""


class Cursor:
    """The current position in every record of one buffer.

    The mask ``sound`` is True for the records that may be valid.
    """

    def __init__(self, data: NDArray[np.uint8], end: int, places: Positions) -> None:
        """Start at ``places``, the first byte of each record; reading changes this array.

        No record extends beyond the byte position ``end``.
        """
        assert end + READABLE_AFTER <= len(data)
        self.places = places
        self.sound: Mask = np.ones(len(places), np.bool_)
        self._data = data
        self._end = end

    def read(self, field: FieldShape) -> Column:
        """Read the next field of every record, and return its values as a column."""
        if field.null_branch is None:
            return self._read_present(field)
        present = self._read_presence(field.null_branch)
        if present is None:
            return self._read_present(field)
        rows = present.nonzero()[0]
        if not len(rows):
            return self._only_nulls(field, present)
        part = self._at(rows)
        column = part._read_present(field)
        self._return(rows, part)
        return _spread(column, rows, present)

    def _read_present(self, field: FieldShape) -> Column:
        if field.is_list:
            return self._read_list(field)
        return NumberColumn(self._read_number()) if field.kind == "number" else self._read_bytes()

    def _read_number(self) -> Numbers:
        """Read one zig-zag number per record; most are one byte long."""
        first = self._data.take(self.places, mode="clip")
        if not first.tobytes().isascii():  # for few records faster than any operation on an array
            return self._read_long_number()
        self.places += 1
        numbers: Numbers = SHORT_NUMBERS.take(first)
        return numbers

    def _read_long_number(self) -> Numbers:
        places = np.minimum(self.places, self._end, out=self.places)
        numbers, sizes, too_long = numbers_at(self._data, places)
        self.sound[too_long] = False
        self.places += sizes
        return numbers

    def _read_bytes(self) -> BytesColumn:
        sizes = self._read_size()
        starts = self.places.copy()
        self.places += sizes
        return BytesColumn(self._data, starts, sizes)

    def _read_size(self) -> Numbers:
        """Read a size in bytes or items; a record with fewer bytes left is marked as not sound."""
        sizes = self._read_number()
        np.minimum(self.places, self._end, out=self.places)
        room = self._end - self.places
        # As unsigned numbers, negative sizes are also too large.
        wrong = sizes.view(np.uint64) > room.view(np.uint64)
        if wrong.any():
            self.sound &= ~wrong
            sizes[wrong] = 0
        return sizes

    def _read_presence(self, null_branch: int) -> Mask | None:
        """Return a mask of the records that have a value; None if all records have a value."""
        branches = self._read_number()
        low, high = _bounds(branches)
        if low < 0 or high > 1:
            self.sound &= (branches == 0) | (branches == 1)
        elif low == high != null_branch:
            return None
        present: Mask = branches != null_branch
        return present

    def _read_list(self, field: FieldShape) -> ListColumn:
        counts = self._read_size()
        if counts.max(initial=0) > _MOST_ITEMS:
            self.sound &= counts <= _MOST_ITEMS
        if not self.sound.all():
            counts[~self.sound] = 0
        total = int(counts.sum())
        if total > self._end:
            raise NotPlainError("its lists hold more items than it has bytes")
        starts = np.cumsum(counts) - counts
        rows = counts.nonzero()[0]
        if not len(rows):
            return ListColumn(self._no_items(field.kind), starts, counts)
        part = self._at(rows)
        items = part._read_items(field, counts[rows], starts[rows], total)
        part.sound &= part._read_number() == 0  # a second block of items is not supported
        self._return(rows, part)
        return ListColumn(items, starts, counts)

    def _read_items(
        self, field: FieldShape, counts: Numbers, starts: Positions, total: int
    ) -> NumberColumn | BytesColumn:
        """Read the lists of all records into one column, list by list.

        The first items of all lists are read together, then the second items, and so on. ``counts``
        has the number of items of each list, ``starts`` the position of its first item in the
        result, and ``total`` is the sum of ``counts``.
        """
        item = field.item
        read: list[tuple[Positions, NumberColumn | BytesColumn]] = []
        for number in range(int(counts.max())):
            rows = (counts > number).nonzero()[0]
            if not self.sound.all():
                rows = rows[self.sound[rows]]
            if not len(rows):
                break
            if len(rows) == len(counts):
                read.append((starts + number, self._read_item(item)))
                continue
            part = self._at(rows)
            read.append((starts[rows] + number, part._read_item(item)))
            self._return(rows, part)
        return _in_order(read, total)

    def _read_item(self, item: FieldShape) -> NumberColumn | BytesColumn:
        column = self.read(item)
        assert not isinstance(column, ListColumn), "no FieldShape describes a list of lists"
        return column

    def keep(self, rows: Positions) -> None:
        """Drop all records except those at the positions ``rows``."""
        self.places = self.places[rows]
        self.sound = self.sound[rows]

    def _only_nulls(self, field: FieldShape, present: Mask) -> Column:
        zeros = np.zeros(len(present), np.int64)
        if field.is_list:
            return ListColumn(self._no_items(field.kind), zeros, zeros, present)
        if field.kind == "number":
            return NumberColumn(zeros, present)
        return BytesColumn(self._data, zeros, zeros, present)

    def _no_items(self, kind: str) -> NumberColumn | BytesColumn:
        if kind == "number":
            return NumberColumn(_NOTHING)
        return BytesColumn(self._data, _NOTHING, _NOTHING)

    def _at(self, rows: Positions) -> Cursor:
        part = Cursor(self._data, self._end, self.places[rows])
        part.sound = self.sound[rows]
        return part

    def _return(self, rows: Positions, part: Cursor) -> None:
        self.places[rows] = part.places
        self.sound[rows] = part.sound


_NOTHING = np.zeros(0, np.int64)


def _bounds(numbers: Numbers) -> tuple[int, int]:
    """Return the smallest and the largest number; (1, 0) if there is none."""
    if len(numbers) <= _FEW:
        few = numbers.tolist()
        return min(few, default=1), max(few, default=0)
    return int(numbers.min()), int(numbers.max())


def _spread(column: Column, rows: Positions, present: Mask) -> Column:
    """Return a column with the values of ``column`` at the positions ``rows``, and null
    elsewhere.
    """

    def spread(values: Numbers) -> Numbers:
        wide = np.zeros(len(present), np.int64)
        wide[rows] = values
        return wide

    if isinstance(column, NumberColumn):
        return NumberColumn(spread(column.numbers), present)
    if isinstance(column, BytesColumn):
        return BytesColumn(column.data, spread(column.starts), spread(column.sizes), present)
    return ListColumn(column.items, spread(column.starts), spread(column.counts), present)


def _in_order(
    read: list[tuple[Positions, NumberColumn | BytesColumn]], total: int
) -> NumberColumn | BytesColumn:
    """Return one column of ``total`` items, list by list.

    Each element of ``read`` has items, and their positions in the returned column.
    """
    present = np.ones(total, np.bool_)
    first, second = np.zeros(total, np.int64), np.zeros(total, np.int64)
    for places, column in read:
        if column.present is not None:
            present[places] = column.present
        if isinstance(column, NumberColumn):
            first[places] = column.numbers
        else:
            first[places], second[places] = column.starts, column.sizes
    known = None if present.all() else present
    items = read[0][1]
    if isinstance(items, BytesColumn):
        return BytesColumn(items.data, first, second, known)
    return NumberColumn(first, known)
