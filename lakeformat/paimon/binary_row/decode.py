# SPDX-License-Identifier: Apache-2.0
"""Decodes one row to values of any types; for many rows see ``column_decoder.py``.

Bytes are not trusted. A reference outside of the row, a count that is too large or a value that its
type cannot hold raises ``CorruptTableError``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.binary_row.layout import (
    INLINE_MARK,
    KIND_BITS,
    MAX_INLINE_SIZE,
    VECTOR_ELEMENTS,
    element_size,
    fixed_size,
    header_size,
    number_code,
    padded,
    reserved_size,
)
from lakeformat.types.count_text import counted
from lakeformat.types.type_kinds import COUNT, MILLIS_PER_DAY, is_bytes, is_text, type_text
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
)
from lakeformat.types.units import decimal_from_unscaled, join_timestamp
from lakeformat.types.values import Value, Variant

__all__ = ["decode_field", "decode_row"]

_DAMAGE = (struct.error, ValueError)


def decode_row(row: bytes | memoryview, types: Sequence[DataType]) -> tuple[Value, ...]:
    """Return the values of a row without its frame, in the Python types of ``types/values.py``.

    Raise CorruptTableError if the row is damaged.
    """
    section = _row_section(memoryview(row), len(types))
    return tuple(_decode_fields(section, types))


def _decode_item(item: memoryview, data_type: DataType) -> Value:
    match data_type:
        case ArrayType(element=element):
            return _decode_array(item, element)
        case MapType(key=key, value=mapped):
            return _decode_map(item, key, mapped)
        case MultisetType(element=element):
            return _decode_map(item, element, COUNT)
        case RowType(fields=fields):
            section = _Section(item, fixed_size(len(fields)))
            return tuple(_decode_fields(section, [field.type for field in fields]))
        case VectorType():
            return _decode_vector(item, data_type)
    (size,) = struct.unpack_from("<i", item)
    if not 0 <= size <= len(item) - 4:
        raise ValueError(f"a VARIANT of {len(item)} bytes cannot hold a value of {size} bytes")
    return Variant(bytes(item[4 : 4 + size]), bytes(item[4 + size :]))


class _Section:
    """The bytes of a row or an array, and the number of bytes that its next items may still
    take.
    """

    __slots__ = ("content", "room", "start")

    def __init__(self, content: memoryview, start: int) -> None:
        if len(content) < start:
            raise ValueError(f"it has {len(content)} bytes, but its fixed part needs {start}")
        self.content = content
        self.start = start
        self.room = len(content) - start

    def item(self, offset: int, size: int) -> memoryview:
        """Return the ``size`` bytes at ``offset`` to which a reference points.

        Raise ValueError if they are outside of the items, or if all items together exceed the
        section.
        """
        end = offset + size
        self.room -= size
        if not self.start <= offset <= end <= len(self.content) or self.room < 0:
            raise ValueError(
                f"a reference to {size} bytes at offset {offset} is outside of the variable-length "
                f"part, from {self.start} to {len(self.content)}, or overlaps another value"
            )
        return self.content[offset:end]


def decode_field(row: memoryview, arity: int, position: int, data_type: DataType) -> Value:
    """Return the value of the field at ``position`` in a row of ``arity`` fields.

    Raise CorruptTableError if the row is damaged.
    """
    return _decode_field(_row_section(row, arity), arity, position, data_type)


def _decode_fields(section: _Section, types: Sequence[DataType]) -> Iterator[Value]:
    for position, data_type in enumerate(types):
        yield _decode_field(section, len(types), position, data_type)


def _row_section(row: memoryview, arity: int) -> _Section:
    try:
        return _Section(row, fixed_size(arity))
    except ValueError as reason:
        raise _damaged(f"a row of {counted(arity, 'field')}", reason) from None


def _decode_field(section: _Section, arity: int, position: int, data_type: DataType) -> Value:
    bit = KIND_BITS + position
    if section.content[bit // 8] >> bit % 8 & 1:
        return None
    try:
        return _decode_slot(section, header_size(arity) + 8 * position, data_type)
    except _DAMAGE as reason:
        size = len(section.content)
        where = f"field {position} of a row of {size} bytes, {type_text(data_type)},"
        raise _damaged(where, reason) from None


def _damaged(what: str, reason: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"{what} is damaged: {reason}; restore the file it comes from, "
        "or roll the table back to an earlier snapshot"
    )


def _decode_slot(section: _Section, at: int, data_type: DataType) -> Value:
    code = number_code(data_type)
    if code is not None:
        assert isinstance(data_type, AtomicType)
        (number,) = struct.unpack_from(f"<{code}", section.content, at)
        return _from_number(number, data_type)
    if is_bytes(data_type):
        stored = _stored_bytes(section, at)
        return str(stored, "utf-8") if is_text(data_type) else bytes(stored)
    low, offset = struct.unpack_from("<II", section.content, at)
    reserved = reserved_size(data_type)
    if not reserved:
        return _decode_item(section.item(offset, low), data_type)
    assert isinstance(data_type, AtomicType)
    item = section.item(offset, reserved)
    if data_type.name is TypeName.DECIMAL:
        return _wide_decimal(item, low, data_type)
    (millis,) = struct.unpack("<q", item)
    return join_timestamp(millis, low, data_type)


def _from_number(number: Value, data_type: AtomicType) -> Value:
    if data_type.name is TypeName.DECIMAL:
        return decimal_from_unscaled(number, data_type)
    if data_type.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return join_timestamp(number, 0, data_type)
    if data_type.name is TypeName.TIME and not 0 <= number < MILLIS_PER_DAY:
        raise ValueError(
            f"{number} is not in the range of TIME, 0 to {MILLIS_PER_DAY - 1} milliseconds after "
            "midnight"
        )
    return number


def _stored_bytes(section: _Section, at: int) -> memoryview:
    mark = section.content[at + MAX_INLINE_SIZE]
    if not mark & INLINE_MARK:
        size, offset = struct.unpack_from("<II", section.content, at)
        return section.item(offset, size)
    size = mark & ~INLINE_MARK
    if size > MAX_INLINE_SIZE:
        raise ValueError(
            f"a value of {size} bytes does not fit into a slot of {MAX_INLINE_SIZE} bytes"
        )
    return section.content[at : at + size]


def _wide_decimal(item: memoryview, size: int, data_type: AtomicType) -> Decimal:
    if not 1 <= size <= len(item):
        raise ValueError(f"a wide decimal has 1 to {len(item)} bytes, not {size}")
    return decimal_from_unscaled(int.from_bytes(item[:size], "big", signed=True), data_type)


def _decode_array(item: memoryview, element: DataType) -> list[Value]:
    (count,) = struct.unpack_from("<i", item)
    size = element_size(element)
    first = 4 + (count + 31) // 32 * 4
    if count < 0 or first + count * size > len(item):
        raise ValueError(f"an array of {len(item)} bytes has no room for {count} elements")
    section = _Section(item, padded(first + count * size))
    return [
        None
        if item[4 + position // 8] >> position % 8 & 1
        else _decode_slot(section, first + position * size, element)
        for position in range(count)
    ]


def _decode_map(item: memoryview, key: DataType, mapped: DataType) -> list[tuple[Value, Value]]:
    (size,) = struct.unpack_from("<i", item)
    if not 0 <= size <= len(item) - 4:
        raise ValueError(f"a map of {len(item)} bytes cannot hold keys of {size} bytes")
    keys = _decode_array(item[4 : 4 + size], key)
    values = _decode_array(item[4 + size :], mapped)
    if len(keys) != len(values):
        raise ValueError(f"a map has {len(keys)} keys and {len(values)} values")
    return list(zip(keys, values, strict=True))


def _decode_vector(item: memoryview, data_type: VectorType) -> list[Value]:
    element = data_type.element
    if not isinstance(element, AtomicType) or element.name not in VECTOR_ELEMENTS:
        raise UnsupportedError(
            f"the elements of a VECTOR cannot be of type {type_text(element)}: use one of "
            f"{', '.join(sorted(VECTOR_ELEMENTS))}"
        )
    (count,) = struct.unpack_from("<i", item)
    if count != data_type.length:
        raise ValueError(f"a VECTOR has {count} elements instead of {data_type.length}")
    needed = 4 + count * element_size(element)
    if len(item) < needed:
        raise ValueError(f"a VECTOR of {count} elements needs {needed} bytes, but has {len(item)}")
    return list(struct.unpack_from(f"<{count}{number_code(element)}", item, 4))
