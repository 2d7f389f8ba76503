# SPDX-License-Identifier: Apache-2.0
"""Row values as Python objects, and their conversion to and from Arrow.

=============================  ==========================================================
type                           value
=============================  ==========================================================
any type, if it is null        ``None``
BOOLEAN                        ``bool``
TINYINT, SMALLINT, INT,        ``int``
BIGINT
FLOAT, DOUBLE                  ``float``
DECIMAL                        ``decimal.Decimal`` with the scale of the type
DATE                           ``int``, days since 1970
TIME                           ``int``, milliseconds of the day
Iceberg's time                 ``int``, microseconds of the day
TIMESTAMP of both kinds        ``int``, nanoseconds since 1970, negative before
CHAR, VARCHAR                  ``str``
BINARY, VARBINARY, BLOB,       ``bytes``
GEOMETRY, GEOGRAPHY
VARIANT                        ``Variant``
ARRAY, VECTOR                  ``list`` of elements
MAP                            ``list`` of (key, value); a ``dict`` is taken as well
MULTISET                       ``list`` of (element, count); a ``dict`` is taken as well
ROW                            ``tuple`` with the values of its fields in order
=============================  ==========================================================

Dates and times are numbers because Python's types stop at microseconds and the year 9999.
"""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_columns import as_column, column_type
from lakeformat.types.arrow_memory import decimal_array
from lakeformat.types.type_kinds import BYTES_TYPES, COUNT, MILLIS_PER_DAY, type_text
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
)
from lakeformat.types.units import timestamp_unit_nanos, unscaled_decimal

__all__ = ["Value", "Variant", "values_from_arrow", "values_to_arrow"]

Value: TypeAlias = Any
"""A value of a type, in the form that the docstring of this module lists for the type."""

_TIMESTAMPS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)


_PYTHON: dict[TypeName, type | tuple[type, ...]] = {
    TypeName.BOOLEAN: bool,
    TypeName.FLOAT: (float, int),
    TypeName.DOUBLE: (float, int),
    TypeName.DECIMAL: Decimal,
    TypeName.CHAR: str,
    TypeName.VARCHAR: str,
    TypeName.VARIANT: tuple,
    **dict.fromkeys(BYTES_TYPES, bytes),
}


class Variant(NamedTuple):
    """A VARIANT as its two parts: value and metadata."""

    value: bytes
    metadata: bytes


def values_from_arrow(array: pa.Array, data_type: DataType) -> list[Value]:
    """Return the values of an Arrow array; raise ``InvalidRequestError`` if it does not fit the
    type.
    """
    column = as_column(array, data_type)
    match data_type:
        case ArrayType(element=element) | VectorType(element=element):
            return _elements(column, element)
        case MapType(key=key, value=mapped):
            return _pairs(column, key, mapped)
        case MultisetType(element=element):
            return _pairs(column, element, COUNT)
        case RowType(fields=fields):
            return _tuples(column, [field.type for field in fields])
    return _atomic_from_arrow(column, data_type)


def values_to_arrow(values: Sequence[Value], data_type: DataType) -> pa.Array:
    """Return an Arrow array with these values, of the Arrow type for ``data_type``.

    Raise ``InvalidRequestError`` for a value that does not fit the type.
    """
    arrow_type = column_type(data_type)
    try:
        if isinstance(data_type, AtomicType) and data_type.name is TypeName.DECIMAL:
            return _decimals(values, data_type)
        return pa.array([_for_arrow(value, data_type) for value in values], arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as reason:
        raise InvalidRequestError(
            f"values do not fit type {type_text(data_type)}: {reason}"
        ) from None


def _decimals(values: Sequence[Value], data_type: AtomicType) -> pa.Array:
    unscaled = []
    for value in values:
        _check_class(value, (Decimal, type(None)))
        unscaled.append(None if value is None else unscaled_decimal(value, data_type))
    return decimal_array(unscaled, column_type(data_type))


def _atomic_from_arrow(column: pa.Array, data_type: AtomicType) -> list[Value]:
    name = data_type.name
    if name in _TIMESTAMPS:
        unit = timestamp_unit_nanos(data_type)
        counts: list[int | None] = column.cast(pa.int64()).to_pylist()
        return [None if count is None else count * unit for count in counts]
    if name in (TypeName.DATE, TypeName.TIME):
        column = column.cast(pa.int32())
    elif name is TypeName.TIME_MICROS:
        column = column.cast(pa.int64())
    values: list[Value] = column.to_pylist()
    if name is TypeName.VARIANT:
        return [None if v is None else Variant(v["value"], v["metadata"]) for v in values]
    return values


def _pairs(column: pa.Array, key: DataType, mapped: DataType) -> list[Value]:
    keys = values_from_arrow(column.keys, key)
    pairs = list(zip(keys, values_from_arrow(column.items, mapped), strict=True))
    return _cut(column, pairs)


def _elements(column: pa.Array, element: DataType) -> list[Value]:
    return _cut(column, values_from_arrow(column.values, element))


def _cut(column: pa.Array, elements: list[Value]) -> list[Value]:
    """Return one list of elements for each row of ``column``; None for a null row.

    ``elements`` has the elements of all rows, one row after the other.
    """
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        ends = [size * (column.offset + row) for row in range(len(column) + 1)]
    else:
        ends = column.offsets.to_pylist()
    return [
        elements[start:end] if valid else None
        for start, end, valid in zip(ends, ends[1:], column.is_valid().to_pylist(), strict=False)
    ]


def _tuples(column: pa.Array, types: Sequence[DataType]) -> list[Value]:
    # Not `field`, which ignores the nulls of the struct itself.
    parts = zip(column.flatten(), types, strict=True)
    rows = zip(*(values_from_arrow(part, data_type) for part, data_type in parts), strict=True)
    is_valid = column.is_valid().to_pylist()
    return [row if valid else None for row, valid in zip(rows, is_valid, strict=True)]


def _for_arrow(value: Value, data_type: DataType) -> Any:
    """Return a value converted for ``pa.array``; raise an error if the type cannot store it.

    Without this check ``pa.array`` would silently cut 1.5 to 1 for an INT.
    """
    if value is None:
        return None
    match data_type:
        case ArrayType(element=element):
            return [_for_arrow(part, element) for part in value]
        case MapType(key=key, value=mapped):
            return _pairs_for_arrow(value, key, mapped)
        case MultisetType(element=element):
            return _pairs_for_arrow(value, element, COUNT)
        case RowType(fields=fields):
            return {
                field.name: _for_arrow(part, field.type)
                for field, part in zip(fields, value, strict=True)
            }
        case AtomicType():
            return _atomic_for_arrow(value, data_type)
    return value


def _pairs_for_arrow(value: Value, key: DataType, mapped: DataType) -> list[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, Mapping) else value
    return [(_for_arrow(k, key), _for_arrow(v, mapped)) for k, v in pairs]


def _atomic_for_arrow(value: Any, data_type: AtomicType) -> Any:
    _check_class(value, _PYTHON.get(data_type.name, int))
    if data_type.name is TypeName.DECIMAL:
        unscaled_decimal(value, data_type)
    elif data_type.name in _TIMESTAMPS:
        nanos = value
        value, rest = divmod(nanos, timestamp_unit_nanos(data_type))
        if rest:
            raise ValueError(f"{nanos} ns since 1970 has {rest} ns that the type cannot store")
    elif data_type.name is TypeName.TIME and not 0 <= value < MILLIS_PER_DAY:
        raise ValueError(f"a time must be 0 to {MILLIS_PER_DAY - 1} ms after midnight, got {value}")
    elif data_type.name is TypeName.TIME_MICROS and not 0 <= value < 1000 * MILLIS_PER_DAY:
        most = 1000 * MILLIS_PER_DAY - 1
        raise ValueError(f"a time must be 0 to {most} µs after midnight, got {value}")
    elif data_type.name is TypeName.FLOAT:
        struct.pack("<f", value)  # raises where Arrow would make infinity
    elif data_type.name is TypeName.VARIANT:
        value = {"value": value[0], "metadata": value[1]}
    return value


def _check_class(value: object, expected: type | tuple[type, ...]) -> None:
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise TypeError(f"{reprlib.repr(value)} is not a value of the type")
