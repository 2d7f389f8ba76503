# SPDX-License-Identifier: Apache-2.0
"""Converts the columns of an Iceberg schema to the types that conditions use."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type
from lakeformat.types.types import (
    BYTES,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    RowType,
    TypeName,
    atomic,
)
from lakeformat.types.types import MapType as PairsType

__all__ = ["columns_with", "condition_fields", "condition_type", "inner_condition_fields"]

_UUID_BYTES = 16
_PLAIN: dict[str, AtomicType] = {
    "boolean": atomic(TypeName.BOOLEAN),
    "int": atomic(TypeName.INT),
    "long": atomic(TypeName.BIGINT),
    "float": atomic(TypeName.FLOAT),
    "double": atomic(TypeName.DOUBLE),
    "date": atomic(TypeName.DATE),
    "time": atomic(TypeName.TIME_MICROS),
    "timestamp": atomic(TypeName.TIMESTAMP, 6),
    "timestamptz": atomic(TypeName.TIMESTAMP_LTZ, 6),
    "timestamp_ns": atomic(TypeName.TIMESTAMP, 9),
    "timestamptz_ns": atomic(TypeName.TIMESTAMP_LTZ, 9),
    "string": STRING,
    "uuid": atomic(TypeName.BINARY, _UUID_BYTES),
    "binary": BYTES,
    "variant": atomic(TypeName.VARIANT),
    "geometry": atomic(TypeName.GEOMETRY),
    "geography": atomic(TypeName.GEOGRAPHY),
    "unknown": STRING,  # all its values are null
}


def condition_fields(schema: Schema) -> tuple[DataField, ...]:
    """Return the columns that a condition can name, in the order of the schema."""
    return tuple(DataField(each.id, each.name, condition_type(each.type)) for each in schema.fields)


def inner_condition_fields(schema: Schema) -> Iterator[DataField]:
    """Yield the fields inside of structs that a condition can name, with dotted names."""
    for column in schema.fields:
        yield from _inside(column)


def _inside(field: Field, prefix: str = "") -> Iterator[DataField]:
    if isinstance(field.type, StructType):
        start = f"{prefix}{field.name}."
        for inner in field.type.fields:
            yield DataField(inner.id, f"{start}{inner.name}", condition_type(inner.type))
            yield from _inside(inner, start)


def columns_with(schema: Schema, names: Collection[str]) -> list[Field]:
    """Return the columns in ``names``, and the columns that contain a nested field in ``names``."""
    return [
        column
        for column in schema.fields
        if any(name == column.name or name.startswith(f"{column.name}.") for name in names)
    ]


def condition_type(kind: Type) -> DataType:
    """Return the type with which a condition compares values of the Iceberg type ``kind``."""
    match kind:
        case PrimitiveType(name="decimal"):
            return atomic(TypeName.DECIMAL, kind.precision, kind.scale)
        case PrimitiveType(name="fixed"):
            return atomic(TypeName.BINARY, kind.length)
        case PrimitiveType(name=name):
            return _PLAIN[name]
        case StructType(fields=fields):
            inner = (DataField(each.id, each.name, condition_type(each.type)) for each in fields)
            return RowType(tuple(inner))
        case ListType(element=element):
            return ArrayType(condition_type(element))
        case MapType(key=key, value=value):
            return PairsType(condition_type(key), condition_type(value))
