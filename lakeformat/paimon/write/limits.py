# SPDX-License-Identifier: Apache-2.0
"""Checks that values fit the type of their column, nested values included."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.files.nested_arrays import present_entries
from lakeformat.types.types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["check_limits"]

_LENGTHS = {
    TypeName.CHAR: pc.utf8_length,
    TypeName.VARCHAR: pc.utf8_length,
    TypeName.BINARY: pc.binary_length,
    TypeName.VARBINARY: pc.binary_length,
}
_TIMESTAMPS = {TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ}
_LAST_MILLISECOND = 24 * 60 * 60 * 1000 - 1
_UNIT_DIGITS = {"ms": 3, "us": 6, "ns": 9}


def check_limits(values: pa.Array, data_type: DataType, name: str, counted: str = "rows") -> None:
    """Raise InvalidRequestError for a null in a NOT NULL column, or a value that exceeds its type.

    A type limits the length of texts and bytes, and the fractional digits of timestamps. A TIME
    must be within one day. ``counted`` is the word for values in messages.
    """
    if not data_type.nullable and values.null_count:
        raise InvalidRequestError(
            f"column {name!r} is NOT NULL, but is null in {values.null_count} of "
            f"{len(values)} {counted}; give each a value, or drop these {counted}"
        )
    match data_type:
        case AtomicType(name=kind) if kind in _LENGTHS:
            _check_length(values, data_type, name)
        case AtomicType(name=kind) if kind in _TIMESTAMPS:
            _check_precision(values, data_type, name)
        case AtomicType(name=TypeName.TIME):
            _check_time(values, name)
        case ArrayType(element=element):
            check_limits(values.flatten(), element, f"{name}.element", "elements")
        case MapType(key=key, value=value):
            keys, items = present_entries(values)
            check_limits(keys, key, f"{name}.key", "entries")
            check_limits(items, value, f"{name}.value", "entries")
        case MultisetType(element=element):
            check_limits(present_entries(values)[0], element, f"{name}.key", "entries")
        case RowType(fields=fields):
            present = values.drop_null()
            for number, field in enumerate(fields):
                check_limits(present.field(number), field.type, f"{name}.{field.name}", "ROWs")


def _check_length(values: pa.Array, data_type: AtomicType, name: str) -> None:
    if data_type.length == MAX_LENGTH:
        return
    longest = pc.max(_LENGTHS[data_type.name](values)).as_py()
    if longest is not None and longest > data_type.length:
        raise InvalidRequestError(
            f"column {name!r} is {data_type.name.value}({data_type.length}), but a value has a "
            f"length of {longest}; shorten it before writing"
        )


def _check_time(values: pa.Array, name: str) -> None:
    """Raise InvalidRequestError for a TIME outside of one day.

    A TIME of every precision keeps its milliseconds, so the precision is not checked.
    """
    millis = pc.min_max(values.cast(pa.int32())).as_py()
    for value in (millis["min"], millis["max"]):
        if value is not None and not 0 <= value <= _LAST_MILLISECOND:
            raise InvalidRequestError(
                f"column {name!r} is a TIME, but a value is {value} ms after midnight; "
                f"valid are 0 to {_LAST_MILLISECOND}: correct the value before writing"
            )


def _check_precision(values: pa.Array, data_type: AtomicType, name: str) -> None:
    """Raise InvalidRequestError if a timestamp has more fractional digits than its column: readers
    would cut them off.
    """
    digits = data_type.precision
    step = 10 ** (_UNIT_DIGITS[values.type.unit] - digits)
    if step == 1:
        return
    units = values.cast(pa.int64())
    if pc.any(pc.not_equal(units, pc.multiply(pc.divide(units, step), step))).as_py():
        raise InvalidRequestError(
            f"column {name!r} keeps {digits} fractional digit{'' if digits == 1 else 's'} of a "
            "second, but a value has more; round it before writing"
        )
