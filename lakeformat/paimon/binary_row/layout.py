# SPDX-License-Identifier: Apache-2.0
"""The layout of a binary row: the sizes and marks of the format.

    header      row kind (0 in keys, partitions and statistics), then one null bit per field from
                bit 8 on, padded to a multiple of 8 bytes
    slots       8 bytes per field: the value, up to 7 bytes of text, or a reference
    items       what references point at, each padded with zeros to a multiple of 8 bytes

A reference is ``offset << 32 | size``, its offset counted from the start of the row. A timestamp is
wide above precision 3, a decimal above precision 18. The item of a wide timestamp is its number of
milliseconds. The remaining nanoseconds are in the reference, in place of the size.

Numbers are little endian; the bytes of a wide decimal and the arity (number of fields) in front of
a row are big endian.
"""

from __future__ import annotations

import struct

from lakeformat.errors import CorruptTableError
from lakeformat.types.count_text import counted
from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = [
    "FRAME_SIZE",
    "INLINE_MARK",
    "KIND_BITS",
    "MAX_INLINE_SIZE",
    "VECTOR_ELEMENTS",
    "element_size",
    "fixed_size",
    "frame_row",
    "header_size",
    "number_code",
    "padded",
    "reserved_size",
    "unframe_row",
]

FRAME_SIZE = 4
KIND_BITS = 8
MAX_INLINE_SIZE = 7
INLINE_MARK = 0x80
"""Bit of a slot's last byte: set if the slot itself contains the text or binary value.

Such a value has up to 7 bytes. The other bits of the slot's last byte are its size in bytes.
"""

_COMPACT_TIMESTAMP_PRECISION = 3
_WIDE_DECIMAL_SIZE = 16
_WIDE_TIMESTAMP_SIZE = 8

_TIMESTAMPS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
_NUMBERS = {
    TypeName.BOOLEAN: "?",
    TypeName.TINYINT: "b",
    TypeName.SMALLINT: "h",
    TypeName.INT: "i",
    TypeName.DATE: "i",
    TypeName.TIME: "i",
    TypeName.BIGINT: "q",
    TypeName.FLOAT: "f",
    TypeName.DOUBLE: "d",
}

VECTOR_ELEMENTS = frozenset(_NUMBERS) - {TypeName.DATE, TypeName.TIME}
"""The element types of a VECTOR; its elements are never null."""


def header_size(arity: int) -> int:
    """Return the size in bytes of the header: row kind and null bits of ``arity`` fields."""
    return (arity + 63 + KIND_BITS) // 64 * 8


def fixed_size(arity: int) -> int:
    """Return the size in bytes of header and slots, which is the offset of the first item."""
    return header_size(arity) + 8 * arity


def padded(size: int) -> int:
    """Return ``size`` rounded up to a multiple of 8 bytes, the space that an item takes."""
    return (size + 7) // 8 * 8


def number_code(data_type: DataType) -> str | None:
    """Return the ``struct`` and numpy code of a type that is stored as a number in its slot, else
    None.
    """
    if not isinstance(data_type, AtomicType) or reserved_size(data_type):
        return None
    if data_type.name is TypeName.DECIMAL or data_type.name in _TIMESTAMPS:
        return "q"
    return _NUMBERS.get(data_type.name)


def reserved_size(data_type: DataType) -> int:
    """Return the size in bytes of the item of a wide decimal or timestamp; 0 for any other type.

    A timestamp is wide above precision 3, a decimal above precision 18. In a row, a null of such a
    type also has this item.
    """
    if not isinstance(data_type, AtomicType):
        return 0
    if data_type.name is TypeName.DECIMAL:
        return _WIDE_DECIMAL_SIZE if data_type.precision > COMPACT_DECIMAL_PRECISION else 0
    if data_type.name in _TIMESTAMPS:
        return _WIDE_TIMESTAMP_SIZE if data_type.precision > _COMPACT_TIMESTAMP_PRECISION else 0
    return 0


def element_size(data_type: DataType) -> int:
    """Return the size in bytes of an array's element: the size of its number, or 8 for a slot."""
    code = number_code(data_type)
    return 8 if code is None else struct.calcsize(f"<{code}")


def frame_row(row: bytes, arity: int) -> bytes:
    """Put the arity (4 bytes, big endian) before a row."""
    return arity.to_bytes(FRAME_SIZE, "big") + row


def unframe_row(framed: bytes) -> tuple[int, bytes]:
    """Split a framed row into its arity and the row.

    Raise CorruptTableError if the row is too short for that many fields, or the arity is negative.
    """
    arity = int.from_bytes(framed[:FRAME_SIZE], "big", signed=True)
    row = framed[FRAME_SIZE:]
    if len(framed) < FRAME_SIZE or arity < 0 or len(row) < fixed_size(arity):
        raise CorruptTableError(
            f"{counted(len(framed), 'byte')} cannot be a binary row of {counted(arity, 'field')}, "
            "so the metadata file that has this partition or bound is damaged; restore the file, "
            "or roll the table back to an earlier snapshot"
        )
    return arity, bytes(row)
