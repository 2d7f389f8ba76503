# SPDX-License-Identifier: Apache-2.0
"""Groups of types, such as all text types, and limits of their values."""

from __future__ import annotations

from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import AtomicType, DataType, TypeName, atomic

__all__ = [
    "BYTES_TYPES",
    "COMPACT_DECIMAL_PRECISION",
    "COUNT",
    "MAX_NANO_OF_MILLI",
    "MILLIS_PER_DAY",
    "is_bytes",
    "is_text",
    "type_text",
]

MAX_NANO_OF_MILLI = 999_999
MILLIS_PER_DAY = 86_400_000

COMPACT_DECIMAL_PRECISION = 18
"""The largest precision of decimals that are stored as one 64-bit number.

Java does not check such a number against the precision of its type. So the sum of two decimals may
have more digits than the type, and is stored unchanged.
"""

COUNT = atomic(TypeName.INT)
"""The type of the counts in a MULTISET, which is stored as a map from element to count."""

_TEXT = (TypeName.CHAR, TypeName.VARCHAR)
BYTES_TYPES = (
    TypeName.BINARY,
    TypeName.VARBINARY,
    TypeName.BLOB,
    TypeName.GEOMETRY,
    TypeName.GEOGRAPHY,
)


def is_text(data_type: DataType) -> bool:
    """Return True for CHAR and VARCHAR."""
    return isinstance(data_type, AtomicType) and data_type.name in _TEXT


def is_bytes(data_type: DataType) -> bool:
    """Return True if values are stored as bytes: texts, binaries, blobs and geometries."""
    return isinstance(data_type, AtomicType) and data_type.name in (*_TEXT, *BYTES_TYPES)


def type_text(data_type: DataType) -> str:
    """Return a type as error messages print it."""
    shown = type_to_json(data_type)
    return shown if isinstance(shown, str) else str(shown["type"])
