# SPDX-License-Identifier: Apache-2.0
"""Columns of manifests: numbers, byte strings, and lists of numbers or of byte strings.

Byte strings are stored as positions and sizes in a shared buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.types.arrow_memory import as_bits
from lakeformat.types.unaligned import at_every_byte

__all__ = [
    "BytesColumn",
    "Column",
    "ListColumn",
    "Mask",
    "NumberColumn",
    "Numbers",
    "Positions",
    "Rows",
    "equal_bytes",
    "equal_lists",
]

Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]
Positions: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Positions | slice
"""The positions of rows in a column, or a slice of them."""

_WORD_BYTES = 8
_READABLE_AFTER = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
"""At index n, a mask of the n lowest bytes of a 64-bit word."""
_FEW = 32
"""Up to this number of values, copying each value is faster than Arrow views."""
_LARGEST_VIEWED = (1 << 31) - 1
"""The largest position in a buffer: an Arrow view stores it as a signed 32-bit number."""
_INLINE_VIEW_SIZE = 12
"""Arrow stores values up to this size in the view itself."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Numbers; where ``present`` is false, the value is null and its number is 0."""

    numbers: Numbers
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Rows) -> NumberColumn:
        """Return the values at the positions ``rows``."""
        return NumberColumn(self.numbers[rows], _taken(self.present, rows))

    def values(self) -> list[int | None]:
        """Return all values as ints, None for a null."""
        return _with_nulls(self.numbers.tolist(), self.present)

    @classmethod
    def of(cls, values: Sequence[int | None]) -> NumberColumn:
        """Return a column of these values."""
        present = _presence(values)
        if present is None:
            return cls(np.array(values, np.int64), None)
        numbers = np.zeros(len(values), np.int64)
        numbers[present] = [value for value in values if value is not None]
        return cls(numbers, present)


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """Byte strings at any positions of a shared buffer; a null is stored as an empty string.

    The buffer must have 8 readable bytes after each string.
    """

    data: NDArray[np.uint8]
    starts: Positions
    sizes: Positions
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Rows) -> BytesColumn:
        """Return the values at the positions ``rows``; the buffer is shared."""
        present = _taken(self.present, rows)
        return BytesColumn(self.data, self.starts[rows], self.sizes[rows], present)

    def values(self) -> list[bytes | None]:
        """Return all values as bytes, None for a null."""
        whole = self.data.data
        ends = self.starts + self.sizes
        pairs = zip(self.starts.tolist(), ends.tolist(), strict=True)
        return _with_nulls([bytes(whole[start:end]) for start, end in pairs], self.present)

    def texts(self) -> list[str | None]:
        """Return all values as str, None for a null.

        Raise UnicodeDecodeError if a value is not UTF-8.
        """
        whole = self.data.data
        ends = self.starts + self.sizes
        pairs = zip(self.starts.tolist(), ends.tolist(), strict=True)
        return _with_nulls([str(whole[start:end], "utf-8") for start, end in pairs], self.present)

    def to_arrow(self) -> pa.Array:
        """Return a binary array with a copy of the values.

        The array does not keep the shared buffer in memory.
        """
        if len(self) <= _FEW or len(self.data) > _LARGEST_VIEWED:
            return self._copied()
        return self._views(pa.binary_view()).cast(pa.large_binary())

    def is_text(self) -> bool:
        """Return True if every value is UTF-8."""
        try:
            if len(self.data) > _LARGEST_VIEWED:
                self.texts()
            else:
                self._views(pa.string_view()).validate(full=True)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return False
        return True

    def words(self, offset: int) -> NDArray[np.uint64]:
        """Return, for each value, its 8 bytes from ``offset`` on as one number; missing bytes are
        zero.
        """
        places = np.minimum(self.starts + offset, len(self.data) - _WORD_BYTES)
        left = (self.sizes - offset).clip(0, _WORD_BYTES)
        found: NDArray[np.uint64] = at_every_byte(self.data, "u8")[places] & _MASKS[left]
        return found

    def _copied(self) -> pa.Array:
        whole, ends = self.data.data, self.starts + self.sizes
        pairs = zip(self.starts.tolist(), ends.tolist(), strict=True)
        content = b"".join([whole[start:end] for start, end in pairs])
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        validity = None if self.present is None else as_bits(self.present)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def _views(self, view_type: pa.DataType) -> pa.Array:
        """Return the values as Arrow views, which refer to the shared buffer without a copy.

        The view of a short value has its size and all its bytes. The view of a longer value has its
        size, its first bytes, its buffer and its position in this buffer.
        """
        rows = len(self)
        views = np.zeros((rows, 4), np.uint32)
        views[:, 0] = self.sizes
        views[:, 1] = at_every_byte(self.data, "u4")[self.starts]
        views[:, 3] = self.starts
        short = np.flatnonzero(self.sizes <= _INLINE_VIEW_SIZE)
        if len(short):
            kept = np.arange(_INLINE_VIEW_SIZE) < self.sizes[short, None]
            places = np.where(kept, self.starts[short, None] + np.arange(_INLINE_VIEW_SIZE), 0)
            inline = np.where(kept, self.data[places], np.uint8(0))
            views[short, 1:] = inline.view(np.uint32)
        validity = None if self.present is None else as_bits(self.present)
        buffers = [validity, pa.py_buffer(views), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(view_type, rows, buffers)

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> BytesColumn:
        """Return a column of these values."""
        present = _presence(values)
        plain: Any = values if present is None else [value or b"" for value in values]
        sizes = np.array([*map(len, plain)], np.int64)
        data = np.frombuffer(b"".join((*plain, bytes(_READABLE_AFTER))), np.uint8)
        return cls(data, np.cumsum(sizes) - sizes, sizes, present)


@dataclass(frozen=True, slots=True)
class ListColumn:
    """Lists; each list is a range of the column ``items``."""

    items: NumberColumn | BytesColumn
    starts: Positions
    counts: Positions
    present: Mask | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Rows) -> ListColumn:
        """Return the lists at the positions ``rows``; the items are shared."""
        present = _taken(self.present, rows)
        return ListColumn(self.items, self.starts[rows], self.counts[rows], present)

    def values(self) -> list[tuple[Any, ...] | None]:
        """Return all lists as tuples, None for a null."""
        return self._tuples(as_text=False)

    def texts(self) -> list[tuple[Any, ...] | None]:
        """Return all lists as tuples of str, None for a null.

        Raise UnicodeDecodeError for bytes that are not UTF-8.
        """
        return self._tuples(as_text=True)

    def item_rows(self) -> Positions:
        """Return the positions in ``items`` that belong to the lists, one list after the other."""
        before = np.cumsum(self.counts) - self.counts
        steps = np.arange(int(self.counts.sum()))
        rows: Positions = np.repeat(self.starts - before, self.counts) + steps
        return rows

    def compact(self) -> ListColumn:
        """Return the same lists, with ``items`` reduced to the items of these lists.

        Byte strings are not copied: the result shares their buffer.
        """
        starts = np.cumsum(self.counts) - self.counts
        return ListColumn(self.items.take(self.item_rows()), starts, self.counts, self.present)

    def _tuples(self, *, as_text: bool) -> list[tuple[Any, ...] | None]:
        if not self.counts.any():
            return _with_nulls([()] * len(self), self.present)
        used = self.items.take(self.item_rows())
        flat = used.texts() if as_text and isinstance(used, BytesColumn) else used.values()
        ends = np.cumsum(self.counts)
        pairs = zip((ends - self.counts).tolist(), ends.tolist(), strict=True)
        return _with_nulls([tuple(flat[start:end]) for start, end in pairs], self.present)

    @classmethod
    def of_numbers(cls, values: Sequence[Sequence[int | None] | None]) -> ListColumn:
        """Return a column of lists of numbers."""
        return cls._of(values, NumberColumn.of([item for row in values for item in row or ()]))

    @classmethod
    def of_texts(cls, values: Sequence[Sequence[str] | None]) -> ListColumn:
        """Return a column of lists of texts."""
        flat = [item.encode() for row in values for item in row or ()]
        return cls._of(values, BytesColumn.of(flat))

    @classmethod
    def _of(
        cls, values: Sequence[Sequence[Any] | None], items: NumberColumn | BytesColumn
    ) -> ListColumn:
        counts = np.array([len(row or ()) for row in values], np.int64)
        return cls(items, np.cumsum(counts) - counts, counts, _presence(values))


Column: TypeAlias = NumberColumn | BytesColumn | ListColumn


def equal_lists(column: ListColumn, rows: Positions, model: int) -> Mask:
    """Return a mask of ``rows``, True where the list equals the list at position ``model``.

    The items of the lists must be byte strings.
    """
    items, starts = column.items, column.starts[rows]
    assert isinstance(items, BytesColumn)
    count = int(column.counts[model])
    equal: Mask = column.counts[rows] == count
    for number in range(count):
        same = np.flatnonzero(equal)
        found = items.take(starts[same] + number)
        wanted = items.take(np.full(len(same), column.starts[model] + number))
        equal[same] = equal_bytes(found, wanted)
    return equal


def equal_bytes(first: BytesColumn, second: BytesColumn) -> Mask:
    """Return a mask of the positions at which both columns have equal values; null equals empty."""
    equal: Mask = first.sizes == second.sizes
    for offset in range(0, int(first.sizes.max(initial=0)), _WORD_BYTES):
        equal &= first.words(offset) == second.words(offset)
    return equal


def _taken(present: Mask | None, rows: Rows) -> Mask | None:
    return None if present is None else present[rows]


def _presence(values: Sequence[Any]) -> Mask | None:
    nulls = values.count(None)
    if nulls == 0:
        return None
    if nulls == len(values):
        return np.zeros(nulls, np.bool_)
    return np.array([value is not None for value in values], np.bool_)


def _with_nulls(values: list[Any], present: Mask | None) -> list[Any]:
    if present is None:
        return values
    return [value if known else None for value, known in zip(values, present.tolist(), strict=True)]
