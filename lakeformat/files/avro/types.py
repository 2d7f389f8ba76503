# SPDX-License-Identifier: Apache-2.0
"""The Avro types that Paimon's Java library declares for columns, and the stored form of values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakeformat.files.decimal_bytes import decimals_to_bytes
from lakeformat.files.nested_arrays import (
    list_around,
    map_entries,
    struct_around,
    struct_children,
)
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    atomic,
)

__all__ = ["avro_record", "to_stored"]

T = TypeName
ROOT = "org.apache.paimon.avro.generated.record"
_COUNT = atomic(T.INT, nullable=False)
_ATOMIC: dict[TypeName, Any] = {
    T.BOOLEAN: "boolean",
    **dict.fromkeys((T.TINYINT, T.SMALLINT, T.INT), "int"),
    T.BIGINT: "long",
    T.FLOAT: "float",
    T.DOUBLE: "double",
    **dict.fromkeys((T.CHAR, T.VARCHAR), "string"),
    **dict.fromkeys((T.BINARY, T.VARBINARY), "bytes"),
    T.DATE: {"type": "int", "logicalType": "date"},
    T.TIME: {"type": "int", "logicalType": "time-millis"},
}
# Java swaps these two: the reverse of Avro's meaning.
_TIMESTAMP_PREFIXES = {T.TIMESTAMP: "timestamp", T.TIMESTAMP_LTZ: "local-timestamp"}
_MILLIS_DIGITS = 3


def avro_record(fields: tuple[DataField, ...]) -> dict[str, Any]:
    """Return the Avro schema that a data file with these columns declares."""
    return _record(fields, ROOT)


def to_stored(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return values as Avro stores them: as numbers, bytes or texts, and a map as a list of
    pairs.
    """
    match data_type:
        case AtomicType():
            return _stored_atomic(array)
        case ArrayType(element=element):
            elements = to_stored(array.values, element)
            return list_around(array, elements, pa.list_(elements.type))
        case MapType(key=key, value=value):
            return _stored_pairs(array, key, value)
        case MultisetType(element=element):
            return _stored_pairs(array, element, _COUNT)
        case RowType(fields=fields):
            children = [
                to_stored(child, field.type)
                for child, field in zip(struct_children(array), fields, strict=True)
            ]
            parts = zip(fields, children, strict=True)
            wanted = pa.struct([(field.name, child.type) for field, child in parts])
            return struct_around(array, children, wanted)
    raise AssertionError(f"Avro has no type for {data_type}")


def _stored_atomic(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_decimal(kind):
        return decimals_to_bytes(array)
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64())
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return array.cast(pa.int32())
    return array


def _stored_pairs(array: pa.Array, key: DataType, value: DataType) -> pa.Array:
    keys, items = map_entries(array)
    children = [to_stored(keys, key), to_stored(items, value)]
    pairs = pa.StructArray.from_arrays(children, names=["key", "value"])
    return list_around(array, pairs, pa.list_(pairs.type))


def _record(fields: tuple[DataField, ...], name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(field, name) for field in fields]}


def _field(field: DataField, record: str) -> dict[str, Any]:
    declared = {"name": field.name, "type": _type(field.type, f"{record}_{field.name}")}
    return {**declared, "default": None} if field.type.nullable else declared


def _type(data_type: DataType, name: str) -> Any:
    """Return the Avro type of a column type; ``name`` becomes the name of a record in it."""
    declared = _not_null(data_type, name)
    return ["null", declared] if data_type.nullable else declared


def _not_null(data_type: DataType, name: str) -> Any:
    match data_type:
        case AtomicType():
            return _atomic(data_type)
        case ArrayType(element=element):
            return {"type": "array", "items": _type(element, name)}
        case MapType(key=key, value=value):
            return _map(key, value, name)
        case MultisetType(element=element):
            return _map(element, atomic(T.INT), name)
        case RowType(fields=fields):
            return _record(fields, name)
    raise AssertionError(f"Avro has no type for {data_type}")


def _atomic(data_type: AtomicType) -> Any:
    if data_type.name is T.DECIMAL:
        size = {"precision": data_type.precision, "scale": data_type.scale}
        return {"type": "bytes", "logicalType": "decimal", **size}
    if data_type.name in _TIMESTAMP_PREFIXES:
        unit = "millis" if data_type.precision <= _MILLIS_DIGITS else "micros"
        prefix = _TIMESTAMP_PREFIXES[data_type.name]
        return {"type": "long", "logicalType": f"{prefix}-{unit}"}
    return _ATOMIC[data_type.name]


def _map(key: DataType, value: DataType, name: str) -> Any:
    if isinstance(key, AtomicType) and key.name in (T.CHAR, T.VARCHAR):
        return {"type": "map", "values": _type(value, name)}
    fields = [
        {"name": "key", "type": _type(key, f"{name}_key")},
        {"name": "value", "type": _type(value, f"{name}_value")},
    ]
    if value.nullable:
        fields[1]["default"] = None
    record = {"type": "record", "name": name, "fields": fields}
    return {"type": "array", "items": record, "logicalType": "map"}
