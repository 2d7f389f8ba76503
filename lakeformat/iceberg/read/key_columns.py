# SPDX-License-Identifier: Apache-2.0
"""Finds the columns that contain keys of equality deletes.

A key may be a field inside of structs. Then the column is read with only this field. If a struct
around the key is null, the key is null.
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
    """Return the current schema of a table, then all its schemas in descending order of their ids.

    So the current schema is in the list twice.
    """
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    return [metadata.schema, *older]


def key_column(schema: Schema, field_id: int) -> Field | None:
    """Return the column that contains the key of equality deletes.

    If the key is a field inside of structs, each struct has only the field that leads to it. Return
    None if the schema lacks the field, or if the field cannot be a key.
    """
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
    """Return ``column`` as a column of data files, in which every value may be null."""
    return replace(_inside(column, optional_column), required=False)


def required_column(column: Field) -> Field:
    """Return ``column`` as a column that delete files must have, without defaults."""
    return replace(_inside(column, required_column), required=True, initial_default=None)


def _inside(column: Field, change: Callable[[Field], Field]) -> Field:
    if not isinstance(column.type, StructType):
        return column
    return replace(column, type=StructType(tuple(map(change, column.type.fields))))


def key_type(column: Field) -> PrimitiveType:
    """Return the type of the key in a column."""
    while isinstance(column.type, StructType):
        [column] = column.type.fields
    assert isinstance(column.type, PrimitiveType)
    return column.type


def key_values(values: pa.Array) -> pa.Array:
    """Return the keys in a column; null if a struct around the key is null."""
    while pa.types.is_struct(values.type):
        [values] = struct_children(values)
    return values
