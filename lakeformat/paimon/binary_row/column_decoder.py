# SPDX-License-Identifier: Apache-2.0
"""Decodes many rows of equal types to columns, without a Python object for each row.

Bytes are checked before they are used. A row that is too short, has another number of fields, or
refers to bytes outside of it raises ``CorruptTableError`` with the number of the row. A timestamp
outside of Arrow's nanosecond range is not damage, so it raises ``UnsupportedError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row.decode import decode_field
from lakeformat.paimon.binary_row.layout import (
    FRAME_SIZE,
    INLINE_MARK,
    KIND_BITS,
    MAX_INLINE_SIZE,
    fixed_size,
    header_size,
    number_code,
    reserved_size,
)
from lakeformat.types.arrow_columns import column_type
from lakeformat.types.arrow_memory import as_bits, byte_spans
from lakeformat.types.type_kinds import (
    MAX_NANO_OF_MILLI,
    MILLIS_PER_DAY,
    is_bytes,
    is_text,
    type_text,
)
from lakeformat.types.types import AtomicType, DataType, TypeName
from lakeformat.types.unaligned import Positions, Words, at_every_byte, move_bytes
from lakeformat.types.units import NANOS_PER_MILLI, timestamp_unit_nanos
from lakeformat.types.values import values_to_arrow
from lakeformat.types.wide_decimal import decode_wide, exceeds_precision

__all__ = ["FramedRows", "decode_columns"]

Mask = NDArray[np.bool_]

_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)
_MAX_BYTES = (1 << 31) - 1
_RESTORE = "restore the file it comes from, or roll the table back to an earlier snapshot"


def decode_columns(rows: pa.Array, types: Sequence[DataType]) -> list[pa.Array]:
    """Return one Arrow array for each field of framed binary rows.

    The arrays have the types of ``to_arrow_type``. Raise the errors of ``FramedRows`` and of its
    method ``column``.
    """
    framed = FramedRows(rows, types)
    return [framed.column(position) for position in range(len(types))]


class FramedRows:
    """Binary rows in an Arrow array, whose fields are decoded to columns on demand.

    Each row is framed: its number of fields (4 bytes, big endian) is in front. The constructor
    raises CorruptTableError for a row that is too short, or that does not have one field for each
    of ``types``. It raises InvalidRequestError if ``rows`` is not a binary array or has nulls.
    """

    def __init__(self, rows: pa.Array, types: Sequence[DataType]) -> None:
        if not _is_binary(rows) or rows.null_count:
            raise InvalidRequestError("framed rows must be a binary array without nulls")
        self._types = tuple(types)
        self._data, starts, ends = byte_spans(rows)
        self._starts, self._sizes = starts, ends - starts
        self._stride = _common_size(self._sizes)
        self._check_frames()
        self._starts, self._sizes = starts + FRAME_SIZE, self._sizes - FRAME_SIZE

    def __len__(self) -> int:
        return len(self._starts)

    def nulls(self, position: int) -> Mask:
        """Return a mask of the rows in which the field at ``position`` is null."""
        byte, bit = divmod(KIND_BITS + position, 8)
        is_null: Mask = self._read("u1", byte) & np.uint8(1 << bit) != 0
        return is_null

    def stored_numbers(self, position: int) -> NDArray[Any]:
        """Return the number in the slot of a fixed-width field, for each row.

        Decimals of up to 18 digits are unscaled, timestamps of up to 3 fractional digits are
        milliseconds. The number of a null has no meaning. Raise InvalidRequestError for a field
        that is not stored as a number.
        """
        code = number_code(self._types[position])
        if code is None:
            raise InvalidRequestError(
                f"{self._name(position)} has no fixed-width numbers: call column({position})"
            )
        # Every byte except zero is true.
        numbers = self._read("u1" if code == "?" else code, self._slot_offset(position))
        return numbers != 0 if code == "?" else numbers

    def column(self, position: int) -> pa.Array:
        """Return the values of the field at ``position`` in all rows.

        Raise CorruptTableError for a damaged value, UnsupportedError for a timestamp outside of
        Arrow's range, and InvalidRequestError if texts or bytes exceed 2 GiB.
        """
        data_type = self._types[position]
        nulls = self.nulls(position)
        if not isinstance(data_type, AtomicType) or data_type.name is TypeName.VARIANT:
            return self._values(position, nulls)
        if is_bytes(data_type):
            return self._bytes(position, data_type, nulls)
        if not reserved_size(data_type):
            return self._numbers(position, data_type, nulls)
        if data_type.name is TypeName.DECIMAL:
            return self._wide_decimals(position, data_type, nulls)
        return self._wide_timestamps(position, data_type, nulls)

    def _check_frames(self) -> None:
        arity = len(self._types)
        self._refuse(
            self._sizes < FRAME_SIZE,
            None,
            f"shorter than the field count at its start, which takes {FRAME_SIZE} bytes",
        )
        found = self._read("u4", 0)
        self._refuse(found != np.uint32(arity).byteswap(), None, f"not of {arity} fields")
        needed = FRAME_SIZE + fixed_size(arity)
        self._refuse(self._sizes < needed, None, f"shorter than {needed} bytes")

    def _slot_offset(self, position: int) -> int:
        return header_size(len(self._types)) + 8 * position

    def _read(self, code: str, offset: int) -> NDArray[Any]:
        """Return the number at byte ``offset`` of each row, in the numpy type ``code``.

        Every row must be long enough to have these bytes.
        """
        if not self._stride:
            return at_every_byte(self._data, code)[self._starts + offset]
        # Rows of equal size form a table, whose columns numpy reads much faster.
        first = int(self._starts[0]) + offset
        return np.ndarray((len(self),), f"<{code}", self._data, first, (self._stride,)).copy()

    def _numbers(self, position: int, data_type: AtomicType, nulls: Mask) -> pa.Array:
        numbers = self.stored_numbers(position)
        if data_type.name is TypeName.BOOLEAN:
            return _array(data_type, nulls, as_bits(numbers))
        if data_type.name is TypeName.TIME:
            out_of_day = (numbers < 0) | (numbers >= MILLIS_PER_DAY)
            self._refuse(out_of_day & ~nulls, position, "not a time between 0:00 and 24:00")
        if data_type.name is TypeName.DECIMAL:
            high = (numbers >> np.int64(63)).view(np.uint64)
            return self._decimals(position, data_type, nulls, (numbers.view(np.uint64), high))
        return _array(data_type, nulls, pa.py_buffer(numbers))

    def _bytes(self, position: int, data_type: AtomicType, nulls: Mask) -> pa.Array:
        marks = self._read("u1", self._slot_offset(position) + MAX_INLINE_SIZE)
        is_inline = marks >= INLINE_MARK
        starts, sizes = self._references(position)
        inline_sizes = (marks & np.uint8(~INLINE_MARK & 0xFF)).astype(np.int64)
        sizes = np.where(is_inline, inline_sizes, sizes)
        too_large = is_inline & (sizes > MAX_INLINE_SIZE)
        self._refuse(too_large & ~nulls, position, "larger than its slot")
        self._check_references(position, starts, sizes, ~is_inline & ~nulls)
        starts = self._starts + np.where(is_inline, self._slot_offset(position), starts)
        sizes[nulls] = 0
        return self._copied(position, data_type, nulls, starts, sizes)

    def _copied(
        self, position: int, data_type: AtomicType, nulls: Mask, starts: Positions, sizes: Positions
    ) -> pa.Array:
        ends = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        if ends[-1] > _MAX_BYTES:
            raise InvalidRequestError(
                f"{self._name(position)} takes {ends[-1]} bytes, more than the "
                f"{_MAX_BYTES} bytes of one Arrow array: choose fewer partitions or files"
            )
        data = np.empty(ends[-1], np.uint8)
        move_bytes(data, ends[:-1], self._data, starts, sizes)
        buffers = (pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data))
        array = _array(data_type, nulls, *buffers)
        if is_text(data_type):
            self._check_text(position, array)
        return array

    def _wide_decimals(self, position: int, data_type: AtomicType, nulls: Mask) -> pa.Array:
        items, sizes = self._wide_items(position, data_type, nulls)
        most = reserved_size(data_type)
        wrong = (sizes < 1) | (sizes > most)
        self._refuse(wrong & ~nulls, position, f"stored with a size other than 1 to {most} bytes")
        words = at_every_byte(self._data, "u8")
        halves = decode_wide(words[items], words[items + 8], np.where(nulls, 1, sizes))
        return self._decimals(position, data_type, nulls, halves)

    def _decimals(
        self, position: int, data_type: AtomicType, nulls: Mask, halves: tuple[Words, Words]
    ) -> pa.Array:
        exceeds = exceeds_precision(*halves, data_type.precision)
        self._refuse(exceeds & ~nulls, position, "a number with more digits than its type allows")
        return _array(data_type, nulls, pa.py_buffer(np.column_stack(halves)))

    def _wide_timestamps(self, position: int, data_type: AtomicType, nulls: Mask) -> pa.Array:
        items, nanos = self._wide_items(position, data_type, nulls)
        wrong = (nanos > MAX_NANO_OF_MILLI) & ~nulls
        self._refuse(wrong, position, "a time with more than 999999 ns after its millisecond")
        millis = at_every_byte(self._data, "i8")[items]
        unit = timestamp_unit_nanos(data_type)
        # int64 wraps around, so a changed sign shows that a value did not fit.
        counts = millis * np.int64(NANOS_PER_MILLI // unit) + nanos // unit
        limit = np.iinfo(np.int64).max // (NANOS_PER_MILLI // unit) + 1
        lost = (np.abs(millis) > limit) | ((millis < 0) != (counts < 0))
        lost &= ~nulls
        if lost.any():
            raise UnsupportedError(
                f"binary row {int(np.argmax(lost))} of {len(lost)}, counted from 0: "
                f"the value of {self._name(position)} does not fit {column_type(data_type)}, the "
                "Arrow type that this version uses. Read the column with another engine"
            )
        return _array(data_type, nulls, pa.py_buffer(counts))

    def _wide_items(
        self, position: int, data_type: AtomicType, nulls: Mask
    ) -> tuple[Positions, Positions]:
        """Return, for each row, the byte offset of the field's item and the lower half of its slot.

        The offset is a position in the buffer that has all rows. If the field is null, it is the
        position at which the row begins.
        """
        offsets, low = self._references(position)
        sizes = np.full(len(self), reserved_size(data_type), np.int64)
        self._check_references(position, offsets, sizes, ~nulls)
        return self._starts + np.where(nulls, 0, offsets), low

    def _values(self, position: int, nulls: Mask) -> pa.Array:
        """Decode a field of a nested type or of type VARIANT, one row at a time.

        Raise CorruptTableError for a damaged value. If all values are null, as in statistics, no
        row is decoded.
        """
        data_type = self._types[position]
        arrow_type = column_type(data_type)
        if nulls.all():
            return pa.nulls(len(self), arrow_type)
        whole = self._data.data
        values = []
        for row, (start, size) in enumerate(
            zip(self._starts.tolist(), self._sizes.tolist(), strict=True)
        ):
            try:
                content = whole[start : start + size]
                values.append(decode_field(content, len(self._types), position, data_type))
            except CorruptTableError as reason:
                raise CorruptTableError(f"row {row}, counted from 0: {reason}") from None
        try:
            return values_to_arrow(values, data_type)
        except InvalidRequestError as reason:
            raise CorruptTableError(
                f"{self._name(position)} of binary rows is damaged: {reason}; {_RESTORE}"
            ) from None

    def _references(self, position: int) -> tuple[Positions, Positions]:
        """Return the upper and the lower half of the field's slot in each row.

        The upper half is the byte offset of the item in the row. The lower half is the item's size
        in bytes, or the nanoseconds of a wide timestamp.
        """
        words = self._read("u8", self._slot_offset(position))
        upper, lower = words >> _HALF_BITS, words & _LOW_HALF
        return upper.view(np.int64), lower.view(np.int64)

    def _check_references(
        self, position: int, offsets: Positions, sizes: Positions, used: Mask
    ) -> None:
        leaves = (offsets < fixed_size(len(self._types))) | (offsets + sizes > self._sizes)
        self._refuse(leaves & used, position, "stored outside of the row's variable-length part")

    def _check_text(self, position: int, array: pa.Array) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            wrong = np.array([_is_not_utf8(value) for value in array.cast(pa.binary())])
            self._refuse(wrong, position, "not UTF-8")

    def _refuse(self, wrong: Mask, position: int | None, what: str) -> None:
        """Raise CorruptTableError for the first row in the mask ``wrong``; do nothing if there is
        none.

        The message is "field <position> is <what>", or only ``what`` if ``position`` is None.
        """
        if not wrong.any():
            return
        field = "" if position is None else f"{self._name(position)} is "
        raise CorruptTableError(
            f"binary row {int(np.argmax(wrong))} of {len(wrong)}, counted from 0, is damaged: "
            f"{field}{what}; {_RESTORE}"
        )

    def _name(self, position: int) -> str:
        return f"field {position} ({type_text(self._types[position])})"


def _is_binary(rows: object) -> bool:
    if not isinstance(rows, pa.Array):
        return False
    return bool(pa.types.is_binary(rows.type) or pa.types.is_large_binary(rows.type))


def _common_size(sizes: Positions) -> int:
    """Return the size in bytes that all rows have; 0 if their sizes differ or there are no rows."""
    return int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else 0


def _is_not_utf8(value: pa.Scalar) -> bool:
    try:
        (value.as_py() or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _array(data_type: DataType, nulls: Mask, *buffers: pa.Buffer) -> pa.Array:
    validity = as_bits(~nulls) if nulls.any() else None
    arrow_type = column_type(data_type)
    return pa.Array.from_buffers(arrow_type, len(nulls), [validity, *buffers])
