# SPDX-License-Identifier: Apache-2.0
"""Converts arrays from the types that a file stores to the Arrow types of a table's columns.

Writers store decimals as integers or bytes, nanoseconds as INT96 or INT64, and a TIME as a plain
number. A nested part may be nullable in the file and NOT NULL in the table, or the reverse.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.files.decimal_bytes import decimals_from_bytes
from lakeformat.files.nested_arrays import (
    as_list,
    list_around,
    map_around,
    map_entries,
    struct_around,
    struct_children,
)
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts.floor_division import floor_divide
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["IS_BYTES", "PhysicalTypeError", "rescale_timestamps", "to_logical"]

_UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NUMBERS = (pa.types.is_integer, pa.types.is_floating)
IS_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
"""Arrow's functions that check if a type is a string or binary type."""

# The physical types that may represent a logical type. Arrow alone would also parse and print
# values.
_ALLOWED: dict[TypeName, tuple[Callable[[pa.DataType], bool], ...]] = {
    TypeName.BOOLEAN: (pa.types.is_boolean,),
    **dict.fromkeys(
        (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT),
        (pa.types.is_integer,),
    ),
    **dict.fromkeys((TypeName.FLOAT, TypeName.DOUBLE), _NUMBERS),
    TypeName.DECIMAL: (pa.types.is_decimal, pa.types.is_binary, pa.types.is_fixed_size_binary),
    **dict.fromkeys(
        (TypeName.CHAR, TypeName.VARCHAR, TypeName.BINARY, TypeName.VARBINARY), IS_BYTES
    ),
    TypeName.DATE: (pa.types.is_date, pa.types.is_int32),
    TypeName.TIME: (pa.types.is_time, pa.types.is_int32),
    **dict.fromkeys((TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ), (pa.types.is_timestamp,)),
}
SHREDDED = "typed_value"


class PhysicalTypeError(ValueError):
    """The type that a file stores for a column cannot hold values of the column's type."""


def to_logical(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the same values in the Arrow type of ``data_type``.

    Raise ``PhysicalTypeError`` if the type of ``array`` cannot hold values of ``data_type``, and
    ``UnsupportedError`` for a form that this version cannot read.
    """
    wanted = to_arrow_type(data_type)
    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    match data_type:
        case ArrayType(element=element):
            array = as_list(array)
            _require(array, data_type, pa.types.is_list)
            return list_around(array, to_logical(array.values, element), wanted)
        case MapType(key=key, value=value):
            return _map(array, key, value, data_type)
        case MultisetType(element=element):
            return _multiset(array, element, data_type)
        case RowType():
            return _row(array, data_type, wanted)
        case AtomicType():
            return _atomic(array, data_type, wanted)
    raise UnsupportedError(
        f"this version cannot read values of type {type_to_json(data_type)}: read only the other "
        "columns, or use another engine"
    )


def _map(array: pa.Array, key: DataType, value: DataType, data_type: DataType) -> pa.Array:
    if _is_shared_shredding(array.type):
        raise UnsupportedError(
            "this version cannot read a MAP in shared-shredding form: read only the other columns, "
            "or use another engine"
        )
    _require(array, data_type, pa.types.is_map, _is_list_of_pairs)
    keys, items = map_entries(array)
    wanted = to_arrow_type(data_type)
    return map_around(array, to_logical(keys, key), to_logical(items, value), wanted)


def _is_shared_shredding(stored: pa.DataType) -> bool:
    """Return True for the struct in which a MAP is stored in shared-shredding form."""
    return bool(pa.types.is_struct(stored) and stored.get_field_index("__field_mapping") >= 0)


def _multiset(array: pa.Array, element: DataType, data_type: DataType) -> pa.Array:
    _require(array, data_type, pa.types.is_map, _is_list_of_pairs)
    keys, counts = map_entries(array)
    wanted = to_arrow_type(data_type)
    return map_around(array, to_logical(keys, element), counts.cast(wanted.item_type), wanted)


def _row(array: pa.Array, data_type: RowType, wanted: pa.DataType) -> pa.Array:
    _require(array, data_type, pa.types.is_struct)
    children = dict(zip([part.name for part in array.type], struct_children(array), strict=True))
    missing = [field.name for field in data_type.fields if field.name not in children]
    if missing:
        raise PhysicalTypeError(f"a ROW lacks the field {missing[0]!r}")
    found = [to_logical(children[field.name], field.type) for field in data_type.fields]
    return struct_around(array, found, wanted)


def _atomic(array: pa.Array, data_type: AtomicType, wanted: pa.DataType) -> pa.Array:
    if data_type.name is TypeName.VARIANT:
        return _variant(array, data_type, wanted)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    _require(array, data_type, *_ALLOWED.get(data_type.name, ()))
    if pa.types.is_timestamp(wanted):
        return rescale_timestamps(array, wanted)
    if pa.types.is_decimal(wanted) and not pa.types.is_decimal(array.type):
        return decimals_from_bytes(array.cast(pa.binary()), wanted)
    return array.cast(wanted)


def _variant(array: pa.Array, data_type: AtomicType, wanted: pa.DataType) -> pa.Array:
    _require(array, data_type, pa.types.is_struct)
    parts = [part.name for part in array.type]
    if SHREDDED in parts:
        raise UnsupportedError(
            "this version cannot read a VARIANT in shredded form: read only the other columns, or "
            "use another engine"
        )
    if sorted(parts) != ["metadata", "value"]:
        raise PhysicalTypeError(
            f"a VARIANT has the parts {', '.join(parts)} instead of metadata and value"
        )
    children = dict(zip(parts, struct_children(array), strict=True))
    # Below a null, any value is possible. The parts of a VARIANT themselves are never null.
    filled = [pc.fill_null(children[part.name].cast(pa.binary()), b"") for part in wanted]
    return struct_around(array, filled, wanted)


def rescale_timestamps(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert timestamps to the unit of ``wanted``; timestamps of a finer unit are rounded down,
    also before 1970.

    Raise ``ArrowInvalid`` for a timestamp beyond the range of the new unit.
    """
    counts = array.view(pa.int64())
    stored, target = _UNIT_NANOS[array.type.unit], _UNIT_NANOS[wanted.unit]
    if stored > target:
        counts = pc.multiply_checked(counts, stored // target)
    elif stored < target:
        counts = floor_divide(counts, target // stored)
    return counts.view(wanted)


def _is_list_of_pairs(arrow_type: pa.DataType) -> bool:
    if not pa.types.is_list(arrow_type) or not pa.types.is_struct(arrow_type.value_type):
        return False
    return len(arrow_type.value_type) == 2


def _require(array: pa.Array, data_type: DataType, *allowed: Callable[[pa.DataType], bool]) -> None:
    if not any(check(array.type) for check in allowed):
        raise PhysicalTypeError(
            f"values of type {type_to_json(data_type)} are stored as {array.type}"
        )
