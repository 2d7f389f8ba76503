# SPDX-License-Identifier: Apache-2.0
"""Converts the columns of a table to the columns of Parquet files, in which every field has its
id.
"""

from __future__ import annotations

import pyarrow as pa

from lakeformat.files.parquet.writer import with_values_below_nulls
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.types import (
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    Type,
    inner_fields,
)

__all__ = ["parquet_fields", "parquet_schema", "to_stored"]

_ID = b"PARQUET:field_id"


def parquet_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields that files store; fields of the type ``unknown`` are left out."""
    return tuple(field for field in fields if field.type != PrimitiveType("unknown"))


def parquet_schema(fields: tuple[Field, ...]) -> pa.Schema:
    """Return the Arrow schema of a file with these columns."""
    return pa.schema([_field(field) for field in parquet_fields(fields)])


def to_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the form in which a file with ``schema`` stores them."""
    return with_values_below_nulls(rows.select(schema.names)).cast(schema)


def _field(field: Field) -> pa.Field:
    ids = {_ID: str(field.id).encode()}
    return pa.field(field.name, _type(field.type), nullable=not field.required, metadata=ids)


def _type(kind: Type) -> pa.DataType:
    inner = [_field(field) for field in inner_fields(kind)]
    match kind:
        case StructType():
            return pa.struct(inner)
        case ListType():
            return pa.list_(inner[0])
        case MapType():
            return pa.map_(*inner)
        case PrimitiveType(name="uuid"):
            return pa.uuid()  # with this type Parquet marks the bytes as a UUID
        case PrimitiveType():
            return to_arrow_type(kind)
