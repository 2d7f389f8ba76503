"""Field ids inside Parquet files, the numbers Java gives them."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.arrow_types import to_arrow_field
from lakeformat.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType

__all__ = ["parquet_schema"]

_NESTED_BASE = 536_870_911
_NESTED_STEP = 1024
_PARQUET_ID = b"PARQUET:field_id"


def parquet_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """The Arrow schema of a data file, every column and nested part with its id."""
    return pa.schema([_numbered_field(field) for field in fields])


def _numbered_field(field: DataField) -> pa.Field:
    plain = to_arrow_field(field)
    numbered = _numbered_type(plain.type, field.type, field.id, depth=1)
    return _with_id(plain.with_type(numbered), field.id)


def _numbered_type(plain: pa.DataType, data_type: DataType, owner: int, depth: int) -> pa.DataType:
    """``owner`` is the id of the column or ROW field around, ``depth`` the nesting below it."""
    up = _NESTED_BASE + _NESTED_STEP * owner + depth
    down = _NESTED_BASE - _NESTED_STEP * owner - depth
    match data_type:
        case RowType(fields=fields):
            return pa.struct([_numbered_field(field) for field in fields])
        case ArrayType(element=element):
            inner = _numbered_part(plain.value_field, element, owner, depth)
            return pa.list_(_with_id(inner, up))
        case MapType(key=key, value=value):
            key_field = _numbered_part(plain.key_field, key, owner, depth)
            item_field = _numbered_part(plain.item_field, value, owner, depth)
            return pa.map_(_with_id(key_field, down), _with_id(item_field, up))
        case MultisetType(element=element):
            key_field = _numbered_part(plain.key_field, element, owner, depth)
            return pa.map_(_with_id(key_field, down), _with_id(plain.item_field, up))
    return plain


def _numbered_part(part: pa.Field, data_type: DataType, owner: int, depth: int) -> pa.Field:
    return part.with_type(_numbered_type(part.type, data_type, owner, depth + 1))


def _with_id(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({_PARQUET_ID: str(field_id).encode()})
