# SPDX-License-Identifier: Apache-2.0
"""Converts columns of a file to the columns of a schema.

Fields are found by id, and values are converted to the field's current type. A field that the file
lacks gets its initial default, or null.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.files.decimal_bytes import decimals_from_bytes
from lakeformat.files.logical_arrays import IS_BYTES, PhysicalTypeError, rescale_timestamps
from lakeformat.files.nested_arrays import (
    as_list,
    list_around,
    map_around,
    map_entries,
    struct_around,
    struct_children,
)
from lakeformat.iceberg.arrow_types import to_arrow_field, to_arrow_type
from lakeformat.iceberg.read.stored_fields import StoredField
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type

__all__ = ["column_values", "default_value", "value_from_json"]

# For each type: the types in which files may store it, including types that were promoted to it.
_STORED_AS: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "boolean": (pa.types.is_boolean,),
    "int": (pa.types.is_integer,),
    "long": (pa.types.is_integer,),
    "float": (pa.types.is_float32,),
    "double": (pa.types.is_float32, pa.types.is_float64),
    "decimal": (pa.types.is_decimal, *IS_BYTES[3:]),
    "date": (pa.types.is_date, pa.types.is_int32),
    "time": (pa.types.is_time, pa.types.is_integer),
    **dict.fromkeys(
        ("timestamp", "timestamp_ns"),
        (pa.types.is_timestamp, pa.types.is_date, pa.types.is_int64),
    ),
    **dict.fromkeys(("timestamptz", "timestamptz_ns"), (pa.types.is_timestamp, pa.types.is_int64)),
    **dict.fromkeys(("string", "binary", "fixed", "uuid"), IS_BYTES),
}


def column_values(array: pa.Array, stored: StoredField, wanted: Type) -> pa.Array:
    """Return a column of a file, converted to the Arrow type of ``wanted``.

    Raise ``PhysicalTypeError`` if the file stores the column in a type that cannot be converted.
    """
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow_type(wanted))
    match wanted:
        case StructType():
            _require(array, wanted, pa.types.is_struct)
            return _struct(array, stored, wanted)
        case ListType(element=element):
            array = as_list(array)
            _require(array, wanted, pa.types.is_list)
            elements = column_values(array.values, stored.inner[0], element)
            return list_around(array, elements, to_arrow_type(wanted))
        case MapType():
            return _map(array, stored, wanted)
        case PrimitiveType():
            return _primitive(array, wanted)


def default_value(field: Field, rows: int) -> pa.Array:
    """Return values of a field for rows of a file that does not have the field.

    Raise ``PhysicalTypeError`` if the field is required and has no initial default.
    """
    arrow_type = to_arrow_type(field.type)
    if field.initial_default is None:
        if field.required:
            raise PhysicalTypeError(f"it lacks the required column {field.name!r}")
        return pa.nulls(rows, arrow_type)
    return pa.repeat(value_from_json(field.initial_default, field.type)[0], rows)


def _struct(array: pa.Array, stored: StoredField, wanted: StructType) -> pa.Array:
    places = {each.id: place for place, each in enumerate(stored.inner) if each.id is not None}
    children = struct_children(array)
    found = []
    for field in wanted.fields:
        place = places.get(field.id)
        if place is None:
            found.append(default_value(field, len(array)))
        else:
            found.append(column_values(children[place], stored.inner[place], field.type))
    return struct_around(array, found, to_arrow_type(wanted))


def _map(array: pa.Array, stored: StoredField, wanted: MapType) -> pa.Array:
    pairs = stored.inner
    if pa.types.is_list(array.type) and len(pairs) == 1:  # Avro stores a map as a list of pairs
        pairs = pairs[0].inner
    elif not pa.types.is_map(array.type):
        raise _stored_as(array, wanted)
    if len(pairs) != 2:
        raise _stored_as(array, wanted)
    keys, items = map_entries(array)
    return map_around(
        array,
        column_values(keys, pairs[0], wanted.key),
        column_values(items, pairs[1], wanted.value),
        to_arrow_type(wanted),
    )


def _primitive(array: pa.Array, wanted: PrimitiveType) -> pa.Array:
    arrow_type = to_arrow_type(wanted)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == arrow_type:
        return array
    _require(array, wanted, *_STORED_AS.get(wanted.name, ()))
    if pa.types.is_decimal(arrow_type) and not pa.types.is_decimal(array.type):
        return decimals_from_bytes(array.cast(pa.binary()), arrow_type)
    if pa.types.is_timestamp(array.type):
        return rescale_timestamps(array, arrow_type)
    if wanted.name == "time" and pa.types.is_integer(array.type):
        return array.cast(pa.int64()).view(arrow_type)
    if pa.types.is_integer(array.type) and pa.types.is_timestamp(arrow_type):
        return array.view(arrow_type)
    if pa.types.is_date(array.type) and pa.types.is_timestamp(arrow_type):
        return _promoted_dates(array, wanted)
    return array.cast(arrow_type)


def _promoted_dates(array: pa.Array, wanted: PrimitiveType) -> pa.Array:
    try:
        return array.cast(to_arrow_type(wanted))
    except pa.ArrowInvalid:
        raise UnsupportedError(
            f"it was promoted from date to {wanted}, and a date in the file is beyond the range of "
            "this type. The file is sound: leave the column out, or read a snapshot from before "
            "the promotion"
        ) from None


def _require(array: pa.Array, wanted: Type, *allowed: Callable[[pa.DataType], bool]) -> None:
    if not any(check(array.type) for check in allowed):
        raise _stored_as(array, wanted)


def _stored_as(array: pa.Array, wanted: Type) -> PhysicalTypeError:
    return PhysicalTypeError(f"values of type {to_arrow_type(wanted)} are stored as {array.type}")


def value_from_json(value: Any, kind: Type, *, for_write: bool = False) -> pa.Array:
    """Return an array of length one with a value that table metadata stores as JSON.

    For None, the array has a null. If the value of a struct lacks a field, the field gets its
    initial default, or with ``for_write`` its write default. Raise ``UnsupportedError`` for a map.
    """
    arrow_type = to_arrow_type(kind)
    if value is None:
        return pa.nulls(1, arrow_type)
    match kind:
        case StructType():
            return _struct_value(value, kind, for_write=for_write)
        case ListType(element=element):
            parts = [value_from_json(each, element, for_write=for_write) for each in value]
            elements = pa.concat_arrays([pa.nulls(0, arrow_type.value_type), *parts])
            return pa.ListArray.from_arrays(pa.array([0, len(parts)]), elements).cast(arrow_type)
        case MapType():
            raise UnsupportedError(
                f"this version does not read the default of a field of type {kind}: use another "
                "engine"
            )
    return _primitive_value(value, kind)


def _struct_value(value: Mapping[str, Any], kind: StructType, *, for_write: bool) -> pa.Array:
    parts: list[pa.Array] = []
    for field in kind.fields:
        default = field.write_default if for_write else field.initial_default
        own = value.get(str(field.id), default)
        parts.append(value_from_json(own, field.type, for_write=for_write))
    fields = [to_arrow_field(field) for field in kind.fields]
    return pa.StructArray.from_arrays(parts, fields=fields)


def _primitive_value(value: Any, kind: PrimitiveType) -> pa.Array:
    arrow_type = to_arrow_type(kind)
    if kind.name == "uuid":
        return pa.array([uuid.UUID(value).bytes], arrow_type)
    if kind.name in ("fixed", "binary"):
        return pa.array([bytes.fromhex(value)], arrow_type)
    if kind.name == "time":
        return pa.array([time.fromisoformat(value)], arrow_type)
    if isinstance(value, str) and kind.name != "string":
        return pc.cast(pa.array([value]), arrow_type)
    return pa.array([value], arrow_type)
