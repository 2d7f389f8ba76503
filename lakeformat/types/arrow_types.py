# SPDX-License-Identifier: Apache-2.0
"""Converts logical types to the Arrow types of columns in memory, and back."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.types import (
    BYTES,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
    atomic,
    with_nullability,
)

__all__ = [
    "from_arrow_type",
    "in_full",
    "to_arrow_field",
    "to_arrow_schema",
    "to_arrow_type",
    "type_of_column",
]

_FIXED: dict[TypeName, pa.DataType] = {
    TypeName.CHAR: pa.string(),
    TypeName.VARCHAR: pa.string(),
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.BINARY: pa.binary(),
    TypeName.VARBINARY: pa.binary(),
    TypeName.TINYINT: pa.int8(),
    TypeName.SMALLINT: pa.int16(),
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.FLOAT: pa.float32(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.DATE: pa.date32(),
    # Files keep milliseconds whatever precision the column declares.
    TypeName.TIME: pa.time32("ms"),
    TypeName.TIME_MICROS: pa.time64("us"),
}

# Paimon has no unsigned types: the next wider signed type holds every value.
_FROM_ARROW: dict[pa.DataType, DataType] = {
    pa.bool_(): atomic(TypeName.BOOLEAN),
    pa.int8(): atomic(TypeName.TINYINT),
    pa.int16(): atomic(TypeName.SMALLINT),
    pa.int32(): atomic(TypeName.INT),
    pa.int64(): atomic(TypeName.BIGINT),
    pa.uint8(): atomic(TypeName.SMALLINT),
    pa.uint16(): atomic(TypeName.INT),
    pa.uint32(): atomic(TypeName.BIGINT),
    pa.uint64(): atomic(TypeName.DECIMAL, 20, 0),
    pa.float16(): atomic(TypeName.FLOAT),
    pa.float32(): atomic(TypeName.FLOAT),
    pa.float64(): atomic(TypeName.DOUBLE),
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.date32(): atomic(TypeName.DATE),
    pa.time32("s"): atomic(TypeName.TIME, 0),
    pa.time32("ms"): atomic(TypeName.TIME, 3),
}
_TIMESTAMP_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for values of a logical type in memory.

    Raise ``UnsupportedError`` for a type whose values this version cannot read.
    """
    match data_type:
        case AtomicType():
            return _atomic_to_arrow(data_type)
        case ArrayType(element=element):
            return pa.list_(_part("element", element))
        case MapType(key=key, value=value):
            return pa.map_(_part("key", key, nullable=False), _part("value", value))
        case MultisetType(element=element):
            counts = pa.field("value", pa.int32(), nullable=False)
            return pa.map_(_part("key", element, nullable=False), counts)
        case RowType(fields=fields):
            return pa.struct([to_arrow_field(field) for field in fields])
        case VectorType():
            raise _without_values("VECTOR")


def to_arrow_field(field: DataField) -> pa.Field:
    """Return the Arrow field of a column or ROW field, with its name and nullability.

    Raise ``UnsupportedError`` for a type whose values this version cannot read.
    """
    return pa.field(field.name, to_arrow_type(field.type), nullable=field.type.nullable)


def to_arrow_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """Return the Arrow schema of a table's rows.

    Raise ``UnsupportedError``, which names the column, for a type whose values this version cannot
    read.
    """
    return pa.schema([_column(field) for field in fields])


def _column(field: DataField) -> pa.Field:
    try:
        return to_arrow_field(field)
    except UnsupportedError as reason:
        raise UnsupportedError(
            f"column {field.name!r}: {reason}; leave it out, or use another engine"
        ) from None


def from_arrow_type(arrow_type: pa.DataType, *, nullable: bool = True) -> DataType:
    """Return the narrowest logical type that holds every value of an Arrow type.

    Raise ``InvalidRequestError`` for an Arrow type without such a logical type, for example
    ``time64`` or ``date64``.
    """
    data_type = _nullable_from_arrow(arrow_type)
    return data_type if nullable else with_nullability(data_type, nullable=False)


def type_of_column(name: str, arrow_type: pa.DataType, *, nullable: bool = True) -> DataType:
    """Return the type that ``from_arrow_type`` returns; an error names the column ``name``."""
    try:
        return from_arrow_type(arrow_type, nullable=nullable)
    except InvalidRequestError as reason:
        raise InvalidRequestError(f"column {name!r}: {reason}") from None


def in_full(carried: pa.DataType) -> pa.DataType:
    """Return the Arrow type of a column after decoding.

    A dictionary becomes the type of its values, and 64-bit decimals become 128-bit decimals; other
    types are unchanged.
    """
    if pa.types.is_dictionary(carried):
        return carried.value_type
    if pa.types.is_decimal64(carried):
        return pa.decimal128(carried.precision, carried.scale)
    return carried


def _atomic_to_arrow(data_type: AtomicType) -> pa.DataType:
    name = data_type.name
    if name in _FIXED:
        return _FIXED[name]
    if name is TypeName.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    if name is TypeName.TIMESTAMP:
        return pa.timestamp(_timestamp_unit(data_type.precision))
    if name is TypeName.TIMESTAMP_LTZ:
        return pa.timestamp(_timestamp_unit(data_type.precision), tz="UTC")
    if name is TypeName.VARIANT:
        parts = ("value", "metadata")
        return pa.struct([pa.field(part, pa.binary(), nullable=False) for part in parts])
    raise _without_values(name)


def _without_values(name: str) -> UnsupportedError:
    return UnsupportedError(f"this version does not read or write values of type {name}")


def _timestamp_unit(precision: int) -> str:
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def _part(name: str, data_type: DataType, *, nullable: bool | None = None) -> pa.Field:
    is_nullable = data_type.nullable if nullable is None else nullable
    return pa.field(name, to_arrow_type(data_type), nullable=is_nullable)


def _nullable_from_arrow(arrow_type: pa.DataType) -> DataType:
    if arrow_type in _FROM_ARROW:
        return _FROM_ARROW[arrow_type]
    if pa.types.is_timestamp(arrow_type):
        name = TypeName.TIMESTAMP if arrow_type.tz is None else TypeName.TIMESTAMP_LTZ
        return atomic(name, _TIMESTAMP_DIGITS[arrow_type.unit])
    if pa.types.is_decimal(arrow_type):
        return atomic(TypeName.DECIMAL, arrow_type.precision, arrow_type.scale)
    if pa.types.is_fixed_size_binary(arrow_type):
        return atomic(TypeName.BINARY, arrow_type.byte_width)
    if pa.types.is_dictionary(arrow_type):
        return _nullable_from_arrow(arrow_type.value_type)
    return _constructed_from_arrow(arrow_type)


def _constructed_from_arrow(arrow_type: pa.DataType) -> DataType:
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return ArrayType(_from_arrow_field(arrow_type.value_field))
    if pa.types.is_map(arrow_type):
        key = from_arrow_type(arrow_type.key_type, nullable=False)
        return MapType(key, _from_arrow_field(arrow_type.item_field))
    if pa.types.is_struct(arrow_type):
        # The ids are provisional. A schema replaces them: it numbers nested fields after its
        # columns.
        return RowType(
            tuple(DataField(i, f.name, _from_arrow_field(f)) for i, f in enumerate(arrow_type))
        )
    raise InvalidRequestError(
        f"Arrow type {arrow_type} has no matching column type: cast the column to another type"
    )


def _from_arrow_field(field: pa.Field) -> DataType:
    return from_arrow_type(field.type, nullable=field.nullable)
