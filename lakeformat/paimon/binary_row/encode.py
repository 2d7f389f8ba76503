# SPDX-License-Identifier: Apache-2.0
"""Encodes one row of values of any types; for many rows see ``column_encoder.py``."""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError
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
from lakeformat.types.units import split_timestamp, unscaled_decimal
from lakeformat.types.values import Value

__all__ = ["encode_items", "encode_row"]

_WRONG_VALUE = (
    struct.error,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    IndexError,
)


def encode_row(values: Sequence[Value], types: Sequence[DataType]) -> bytes:
    """Return the bytes of a row without a frame, from values in the Python types of
    ``types/values.py``.

    Raise InvalidRequestError if a value does not fit its type, or if there is not one type for each
    value.
    """
    if len(values) != len(types):
        raise InvalidRequestError(
            f"a row of {counted(len(types), 'field')} cannot hold {counted(len(values), 'value')}"
        )
    fields = _Items(fixed_size(len(types)))
    slots = bytearray(fields.start)
    for position, (value, data_type) in enumerate(zip(values, types, strict=True)):
        try:
            slot = _encode_field(value, data_type, position, slots, fields)
        except _WRONG_VALUE as reason:
            raise InvalidRequestError(
                f"field {position} of a row, {type_text(data_type)}, "
                f"cannot hold {reprlib.repr(value)}: {reason}"
            ) from None
        start = header_size(len(types)) + 8 * position
        slots[start : start + len(slot)] = slot
    return bytes(slots) + bytes(fields.content)


def encode_item(value: Value, data_type: DataType) -> bytes:
    """Return the bytes of a nested value or VARIANT, before they are padded to 8 bytes.

    A value that does not fit ``data_type`` raises a Python error, such as TypeError or ValueError.
    """
    match data_type:
        case ArrayType(element=element):
            return _encode_array(value, element)
        case MapType(key=key, value=mapped):
            return _encode_map(value, key, mapped)
        case MultisetType(element=element):
            return _encode_map(value, element, COUNT)
        case RowType(fields=fields):
            return encode_row(value, [field.type for field in fields])
        case VectorType():
            return _encode_vector(value, data_type)
    content, metadata = value
    return b"".join((struct.pack("<i", len(content)), content, metadata))


def encode_items(values: Sequence[Value], data_type: DataType) -> list[bytes | None]:
    """Return the bytes of each nested value or VARIANT, before padding; None for a None.

    Raise InvalidRequestError if a value does not fit ``data_type``.
    """
    try:
        return [None if value is None else encode_item(value, data_type) for value in values]
    except _WRONG_VALUE as reason:
        raise InvalidRequestError(
            f"a value does not fit the type {type_text(data_type)} of its column: {reason}"
        ) from None


class _Items:
    """The values of a row or array that do not fit into its slots.

    Their bytes follow all slots, and the slot of a value has its offset.
    """

    __slots__ = ("content", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.content = bytearray()

    def refer(self, item: bytes, low: int | None = None) -> bytes:
        """Append an item, and return the 8 bytes of the slot that refers to it.

        The lower half of the slot is the item's size, or ``low`` if it is given.
        """
        offset = self.start + len(self.content)
        self.content += item.ljust(padded(len(item)), b"\0")
        return struct.pack("<II", len(item) if low is None else low, offset)


def _encode_field(
    value: Value, data_type: DataType, position: int, slots: bytearray, items: _Items
) -> bytes:
    if value is not None:
        return _encode_slot(value, data_type, items)
    bit = KIND_BITS + position
    slots[bit // 8] |= 1 << bit % 8
    # A wide null keeps its item, and its slot refers to that item: hashes of keys include these
    # bytes.
    reserved = reserved_size(data_type)
    return items.refer(bytes(reserved), low=0) if reserved else bytes(8)


def _encode_slot(value: Value, data_type: DataType, items: _Items) -> bytes:
    """Return the bytes of a value's slot.

    The bytes of a number may be shorter than 8; the caller pads them.
    """
    if not isinstance(data_type, AtomicType):
        return items.refer(encode_item(value, data_type))
    if is_bytes(data_type):
        return _encode_bytes(_to_bytes(value, data_type), items)
    if data_type.name is TypeName.VARIANT:
        return items.refer(encode_item(value, data_type))
    if data_type.name is TypeName.DECIMAL:
        return _encode_decimal(unscaled_decimal(value, data_type), data_type, items)
    if data_type.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return _encode_timestamp(split_timestamp(value, data_type), data_type, items)
    return _encode_number(value, data_type)


def _encode_number(value: Value, data_type: AtomicType) -> bytes:
    if isinstance(value, bool) is not (data_type.name is TypeName.BOOLEAN):
        raise TypeError(
            "a BOOLEAN column takes only True and False, and no other column takes these values"
        )
    if data_type.name is TypeName.TIME and not 0 <= value < MILLIS_PER_DAY:
        raise ValueError(
            f"{value} is not in the range of TIME, 0 to {MILLIS_PER_DAY - 1} milliseconds after "
            "midnight"
        )
    return struct.pack(f"<{number_code(data_type)}", value)


def _to_bytes(value: Value, data_type: AtomicType) -> bytes:
    if is_text(data_type):
        encoded = value.encode()
        assert isinstance(encoded, bytes)
        return encoded
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{reprlib.repr(value)} is of type {type(value).__name__}, not bytes")
    return bytes(value)


def _encode_bytes(value: bytes, items: _Items) -> bytes:
    if len(value) > MAX_INLINE_SIZE:
        return items.refer(value)
    return value.ljust(MAX_INLINE_SIZE, b"\0") + bytes([INLINE_MARK | len(value)])


def _encode_decimal(unscaled: int, data_type: AtomicType, items: _Items) -> bytes:
    reserved = reserved_size(data_type)
    if not reserved:
        return struct.pack("<q", unscaled)
    # The fewest bytes that keep the sign, as Java's BigInteger.toByteArray returns them.
    magnitude = ~unscaled if unscaled < 0 else unscaled
    size = magnitude.bit_length() // 8 + 1
    minimal = unscaled.to_bytes(size, "big", signed=True)
    return items.refer(minimal.ljust(reserved, b"\0"), low=size)


def _encode_timestamp(parts: tuple[int, int], data_type: AtomicType, items: _Items) -> bytes:
    millis, nano_of_milli = parts
    stored = struct.pack("<q", millis)
    return items.refer(stored, low=nano_of_milli) if reserved_size(data_type) else stored


def _encode_array(values: Sequence[Value], element: DataType) -> bytes:
    size = element_size(element)
    first = 4 + (len(values) + 31) // 32 * 4
    items = _Items(padded(first + len(values) * size))
    fixed = bytearray(items.start)
    struct.pack_into("<i", fixed, 0, len(values))
    for position, value in enumerate(values):
        if value is None:
            # Unlike in a row, a wide null has no item.
            fixed[4 + position // 8] |= 1 << position % 8
        else:
            start = first + position * size
            slot = _encode_slot(_one_nan(value), element, items)
            fixed[start : start + size] = slot
    return bytes(fixed) + bytes(items.content)


def _one_nan(value: Value) -> Value:
    """Return the value; a NaN is replaced by one fixed NaN.

    The format allows any NaN in a row, but only this one in an array.
    """
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _encode_map(value: Any, key: DataType, mapped: DataType) -> bytes:
    pairs = list(value.items() if isinstance(value, Mapping) else value)
    keys = _encode_array([pair[0] for pair in pairs], key)
    values = _encode_array([pair[1] for pair in pairs], mapped)
    return struct.pack("<i", len(keys)) + keys + values


def _encode_vector(values: Sequence[Value], data_type: VectorType) -> bytes:
    element = data_type.element
    if not isinstance(element, AtomicType) or element.name not in VECTOR_ELEMENTS:
        raise ValueError(
            f"the elements of a VECTOR cannot be of type {type_text(element)}: use one of "
            f"{', '.join(sorted(VECTOR_ELEMENTS))}"
        )
    if len(values) != data_type.length:
        raise ValueError(
            f"the value has {len(values)} elements, but the VECTOR has {data_type.length}"
        )
    packed = b"".join(_encode_number(value, element) for value in values)
    # Unlike for other items, the size of a vector includes its padding; its count does not.
    return struct.pack("<i", len(values)) + packed.ljust(padded(len(packed)), b"\0")
