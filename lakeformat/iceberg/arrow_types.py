# SPDX-License-Identifier: Apache-2.0
"""Converts Iceberg types to Arrow types."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type

__all__ = ["to_arrow_field", "to_arrow_type"]

_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    # Bytes instead of Arrow's UUID type, because Arrow cannot compare or sort values of that type.
    "uuid": pa.binary(16),
    "binary": pa.binary(),
    "unknown": pa.null(),
}


def to_arrow_type(kind: Type) -> pa.DataType:
    """Return the Arrow type that can hold every value of an Iceberg type.

    Raise ``UnsupportedError`` for a type whose values this version does not read.
    """
    match kind:
        case PrimitiveType():
            return _primitive(kind)
        case StructType():
            return pa.struct([to_arrow_field(field) for field in kind.fields])
        case ListType():
            element = to_arrow_type(kind.element)
            return pa.list_(pa.field("element", element, nullable=not kind.element_required))
        case MapType():
            value = to_arrow_type(kind.value)
            return pa.map_(
                pa.field("key", to_arrow_type(kind.key), nullable=False),
                pa.field("value", value, nullable=not kind.value_required),
            )


def to_arrow_field(field: Field) -> pa.Field:
    """Return the Arrow field of a column or of a nested field.

    Raise ``UnsupportedError``, with the name of the field, if this version does not read its
    values.
    """
    try:
        arrow_type = to_arrow_type(field.type)
    except UnsupportedError as reason:
        raise UnsupportedError(f"column {field.name!r}: {reason}") from None
    return pa.field(field.name, arrow_type, nullable=not field.required)


def _primitive(kind: PrimitiveType) -> pa.DataType:
    if kind.name in _PLAIN:
        return _PLAIN[kind.name]
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name == "fixed":
        return pa.binary(kind.length)
    raise UnsupportedError(
        f"this version does not read values of type {kind}; leave the column out, or use another "
        "engine"
    )
