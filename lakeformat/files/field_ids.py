# SPDX-License-Identifier: Apache-2.0
"""The field ids that Java writes into Parquet and ORC files."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.types.arrow_types import to_arrow_field
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["PARQUET_ID", "orc_schema", "parquet_schema"]

_NESTED_BASE = 536_870_911
_NESTED_STEP = 1024
PARQUET_ID = b"PARQUET:field_id"
"""The metadata key of an Arrow field for its field id in a Parquet file."""
_ORC_ID = b"paimon.id"


def parquet_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """Return the Arrow schema of a Parquet file in which each column and each nested part has its
    id.
    """
    return pa.schema([_numbered_field(field) for field in fields])


def orc_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """Return the Arrow schema of an ORC file: ids are type attributes, and all parts except map
    keys are nullable.
    """
    return pa.schema([_orc_field(_numbered_field(field)) for field in fields])


def _orc_field(field: pa.Field, *, nullable: bool = True) -> pa.Field:
    ids = {_ORC_ID: field.metadata[PARQUET_ID]}
    return pa.field(field.name, _orc_type(field.type), nullable=nullable, metadata=ids)


def _orc_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that stores ``arrow_type`` in an ORC file.

    TIME becomes int32, because ORC has no TIME. All timestamps become nanoseconds.
    """
    if pa.types.is_time(arrow_type):
        return pa.int32()
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("ns", arrow_type.tz)
    if pa.types.is_struct(arrow_type):
        return pa.struct([_orc_field(part) for part in arrow_type])
    if pa.types.is_map(arrow_type):
        key = _orc_field(arrow_type.key_field, nullable=False)
        return pa.map_(key, _orc_field(arrow_type.item_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_orc_field(arrow_type.value_field))
    return arrow_type


def _numbered_field(field: DataField) -> pa.Field:
    plain = to_arrow_field(field)
    numbered = _numbered_type(plain.type, field.type, field.id, depth=1)
    return _with_id(plain.with_type(numbered), field.id)


def _numbered_type(plain: pa.DataType, data_type: DataType, owner: int, depth: int) -> pa.DataType:
    """Return an Arrow type whose nested parts have ids.

    ``owner`` is the id of the nearest enclosing column or ROW field. ``depth`` is 1 if
    ``data_type`` is the type of ``owner``, and grows by 1 with each array, map or multiset in
    between.
    """
    up = _NESTED_BASE + _NESTED_STEP * owner + depth
    down = _NESTED_BASE - _NESTED_STEP * owner - depth
    match data_type:
        case AtomicType(name=TypeName.VARIANT):
            parts = [plain.field(part) for part in ("value", "metadata")]
            return pa.struct([_with_id(part, number) for number, part in enumerate(parts)])
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
    return field.with_metadata({PARQUET_ID: str(field_id).encode()})
