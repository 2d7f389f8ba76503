# SPDX-License-Identifier: Apache-2.0
"""The parts of binary rows as columns of 32-bit and 64-bit words: headers, slots and items.

The encoder copies the words of all rows into one buffer. The hash needs no encoded rows: it reads
the words in the order that they would have in an encoded row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.binary_row.encode import encode_items
from lakeformat.paimon.binary_row.layout import (
    INLINE_MARK,
    KIND_BITS,
    MAX_INLINE_SIZE,
    fixed_size,
    header_size,
    number_code,
    reserved_size,
)
from lakeformat.types.arrow_columns import as_column
from lakeformat.types.arrow_memory import null_mask, numbers, spans
from lakeformat.types.type_kinds import is_bytes
from lakeformat.types.types import AtomicType, DataType, TypeName
from lakeformat.types.unaligned import Positions, WordReader, Words
from lakeformat.types.units import NANOS_PER_MILLI, timestamp_unit_nanos
from lakeformat.types.values import values_from_arrow
from lakeformat.types.wide_decimal import encode_wide

__all__ = [
    "MASKS",
    "ItemTail",
    "Offset",
    "RowParts",
    "Slot",
    "WideTail",
    "as_row_columns",
    "row_parts",
]

Slot: TypeAlias = NDArray[np.uint32] | Words
"""The slots of one column, a word for each row.

A 32-bit word is the lower half of a slot whose upper half is zero.
"""

Offset: TypeAlias = int | Positions
"""The byte offset in each row at which its next item starts; an int if it is equal in all rows."""

# For each number of bytes: the mask of those bytes in a word.
MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class WideTail:
    """The items of a column of wide decimals (two words) or wide timestamps (one word)."""

    words: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class ItemTail:
    """The items of a column of texts, bytes or nested values.

    The item of a row is in ``source``, from byte ``starts`` to ``starts + sizes``; a row without an
    item has size 0. ``source`` must be readable up to 16 bytes beyond every item.
    """

    source: Words
    starts: Positions
    sizes: Positions


@dataclass(slots=True)
class RowParts:
    """The parts of rows of equal types; ``end`` is the size of each row in bytes."""

    rows: int
    header: list[int | Words]
    slots: list[Slot] = field(default_factory=list)
    tails: list[WideTail | ItemTail] = field(default_factory=list)
    end: Offset = 0


def as_row_columns(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> list[pa.Array]:
    """Return arrays of equal length in the form that ``row_parts`` takes.

    Values of nested types and VARIANT are encoded to bytes. Raise InvalidRequestError if the
    lengths differ, or if there is not one type for each array.
    """
    if len(arrays) != len(types):
        raise InvalidRequestError(
            f"{len(types)} types need {len(types)} columns, got {len(arrays)}"
        )
    columns = [_as_row_column(*pair) for pair in zip(arrays, types, strict=True)]
    if len({len(column) for column in columns}) > 1:
        raise InvalidRequestError(
            f"columns must have equal lengths, got {[len(column) for column in columns]}"
        )
    return columns


def row_parts(columns: Sequence[pa.Array], types: Sequence[DataType], rows: int) -> RowParts:
    """Split columns into the headers, slots and items of their binary rows.

    ``rows`` is the number of rows.
    """
    arity = len(types)
    parts = RowParts(rows, [0] * (header_size(arity) // 8), end=fixed_size(arity))
    for position, (column, data_type) in enumerate(zip(columns, types, strict=True)):
        nulls = null_mask(column)
        if nulls is not None:
            word, bit = divmod(KIND_BITS + position, 64)
            bits: Words = nulls.astype(np.uint64) << np.uint64(bit)
            parts.header[word] = bits | np.uint64(parts.header[word])
        if number_code(data_type) is not None:
            parts.slots.append(_number_slot(column, nulls))
        elif reserved_size(data_type):
            assert isinstance(data_type, AtomicType)
            _add_wide(parts, column, data_type, nulls)
        else:
            _add_items(parts, column, nulls, may_inline=is_bytes(data_type))
    return parts


def _as_row_column(array: pa.Array, data_type: DataType) -> pa.Array:
    column = as_column(array, data_type)
    if number_code(data_type) or reserved_size(data_type) or is_bytes(data_type):
        return column
    return pa.array(encode_items(values_from_arrow(column, data_type), data_type), pa.binary())


def _number_slot(column: pa.Array, nulls: NDArray[np.bool_] | None) -> Slot:
    values = numbers(column)
    if values.ndim == 2:
        values = values[:, 0]  # a compact decimal is in its low half
    if values.itemsize < 4:
        values = values.view(f"<u{values.itemsize}").astype(np.uint32)
    words: Slot = values.view(f"<u{values.itemsize}")
    return words if nulls is None else np.where(nulls, words.dtype.type(0), words)


def _add_wide(
    parts: RowParts, column: pa.Array, data_type: AtomicType, nulls: NDArray[np.bool_] | None
) -> None:
    low: Words
    words: tuple[Words, ...]
    if data_type.name is TypeName.DECIMAL:
        halves = numbers(column)
        first, second, low = encode_wide(halves[:, 0], halves[:, 1])
        words = (first, second)
    else:
        per_milli = NANOS_PER_MILLI // timestamp_unit_nanos(data_type)
        millis, rest = np.divmod(numbers(column), np.int64(per_milli))
        low = (rest * timestamp_unit_nanos(data_type)).view(np.uint64)
        words = (millis.view(np.uint64),)
    if nulls is not None:
        # A null keeps an item of zeros, and its slot refers to that item.
        low = np.where(nulls, np.uint64(0), low)
        words = tuple(np.where(nulls, np.uint64(0), word) for word in words)
    parts.slots.append(_references(parts.end, low))
    parts.tails.append(WideTail(words))
    parts.end = parts.end + reserved_size(data_type)


def _add_items(
    parts: RowParts, column: pa.Array, nulls: NDArray[np.bool_] | None, *, may_inline: bool
) -> None:
    source, starts, sizes = spans(column, nulls)
    item_sizes = sizes
    slot = _references(parts.end, sizes.view(np.uint64))
    if may_inline:
        is_inline = sizes <= MAX_INLINE_SIZE
        inline = np.flatnonzero(is_inline)
        if len(inline):
            slot[inline] = _inline_slots(source, starts[inline], sizes[inline])
            item_sizes = np.where(is_inline, 0, sizes)
    if nulls is not None:
        slot[nulls] = 0
    parts.slots.append(slot)
    parts.tails.append(ItemTail(source, starts, item_sizes))
    parts.end = parts.end + ((item_sizes + 7) & -8)


def _inline_slots(source: Words, starts: Positions, sizes: Positions) -> Words:
    content = WordReader(source, starts).read(len(starts)) & MASKS[sizes]
    marks = (sizes | INLINE_MARK).view(np.uint64) << np.uint64(8 * MAX_INLINE_SIZE)
    slots: Words = content | marks
    return slots


def _references(offset: Offset, low: Words) -> Words:
    if isinstance(offset, int):
        return low | np.uint64(offset << 32)
    return low | (offset.view(np.uint64) << np.uint64(32))
