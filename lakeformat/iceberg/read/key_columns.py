# SPDX-License-Identifier: Apache-2.0
"""The columns that hold the keys of equality deletes: a key may be a field inside of structs.

Such a key is read as its column without all other fields. If a struct around it is null, the key
is null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from lakeformat.files.nested_arrays import struct_children
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType, StructType

__all__ = [
    "key_column",
    "key_type",
    "key_values",
    "newest_schemas",
    "optional_column",
    "required_column",
]


def newest_schemas(metadata: TableMetadata) -> list[Schema]:
    """Return the current schema of a table, then its other schemas, newest first."""
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    return [metadata.schema, *older]


def key_column(schema: Schema, field_id: int) -> Field | None:
    """Return the column of a key, with no other field inside; None if it cannot be a key."""
    return _only(schema.fields, field_id) if schema.field(field_id) is not None else None


def _only(fields: tuple[Field, ...], field_id: int) -> Field | None:
    for field in fields:
        if field.id == field_id:
            return field if isinstance(field.type, PrimitiveType) else None
        if isinstance(field.type, StructType):
            inside = _only(field.type.fields, field_id)
            if inside is not None:
                return replace(field, type=StructType((inside,)))
    return None


def optional_column(column: Field) -> Field:
    """Return the column of a key as data files may have it: every value may be missing."""
    return replace(_inside(column, optional_column), required=False)


def required_column(column: Field) -> Field:
    """Return the column of a key as delete files must have it, without defaults."""
    return replace(_inside(column, required_column), required=True, initial_default=None)


def _inside(column: Field, change: Callable[[Field], Field]) -> Field:
    if not isinstance(column.type, StructType):
        return column
    return replace(column, type=StructType(tuple(map(change, column.type.fields))))


def key_type(column: Field) -> PrimitiveType:
    """Return the type of the key that a column holds."""
    while isinstance(column.type, StructType):
        [column] = column.type.fields
    assert isinstance(column.type, PrimitiveType)
    return column.type


def key_values(values: pa.Array) -> pa.Array:
    """Return the keys that a column holds; null where a struct around them is null."""
    while pa.types.is_struct(values.type):
        [values] = struct_children(values)
    return values
