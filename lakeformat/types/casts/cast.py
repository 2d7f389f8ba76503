# SPDX-License-Identifier: Apache-2.0
"""Finds the cast for a pair of types and applies it to a whole array."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import numbers, parsing, printing, strings, timestamps
from lakeformat.types.casts.rules import CHARACTERS, INTEGERS, TIMESTAMPS
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataType, TypeName, with_nullability

__all__ = ["cast_array"]

T = TypeName
_BYTES = (T.BINARY, T.VARBINARY)
_FLOATS = (T.FLOAT, T.DOUBLE)
_REACH_OF_NANOSECONDS = (
    "this library holds timestamps of a precision above 6 as nanoseconds in 64 bits, which reach "
    "only from 1677-09-21 to 2262-04-11; give the column a precision of at most 6"
)
"""The reason for refusing a timestamp out of range. Java has a larger range, because it stores
milliseconds and nanoseconds separately.
"""


def cast_array(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array:
    """Convert values from one type to another, each as Java casts it.

    The local time zone is always UTC, so a table reads the same on each machine. Raise
    ``UnsupportedError`` if Java or this library has no such cast. Raise ``InvalidRequestError`` for
    a value that cannot be converted, such as a text that is not a number, or a timestamp beyond the
    range of nanoseconds.
    """
    if with_nullability(stored, nullable=True) == with_nullability(wanted, nullable=True):
        return array
    try:
        found = _cast(array, stored, wanted)
    except pa.ArrowInvalid as reason:
        raise _no_counterpart(array, stored, wanted, reason) from None
    if found is None:
        raise UnsupportedError(
            f"{type_to_sql(stored)} cannot become {type_to_sql(wanted)}: there is no such cast. "
            "Choose another type"
        )
    assert found.type == to_arrow_type(wanted), f"{found.type} for {wanted}"
    return found


def _no_counterpart(
    array: pa.Array, stored: DataType, wanted: DataType, reason: pa.ArrowInvalid
) -> InvalidRequestError:
    value = _text_of(_first_bad(array, stored, wanted))
    in_nanoseconds = to_arrow_type(wanted) in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
    return InvalidRequestError(
        f"{value} of {type_to_sql(stored)} cannot become {type_to_sql(wanted)}: "
        f"{_REACH_OF_NANOSECONDS if in_nanoseconds else reason}"
    )


def _first_bad(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array:
    """Return the first value that cannot be cast, as an array of one element."""
    while len(array) > 1:
        half = array[: len(array) // 2]
        try:
            _cast(half, stored, wanted)
        except pa.ArrowInvalid:
            array = half
        else:
            array = array[len(half) :]
    return array


def _text_of(value: pa.Array) -> str:
    """Return the single element of ``value`` as Arrow prints it.

    Java prints years with four digits only, so its text would hide a year out of range.
    """
    try:
        return str(value.cast(pa.string())[0])
    except pa.ArrowException:  # bytes that are not UTF-8
        return str(value[0])


def _cast(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array | None:
    if not isinstance(wanted, AtomicType):
        return None
    if not isinstance(stored, AtomicType):
        return printing.nested_to_text(array, stored, cast_array) if _is_text(wanted) else None
    if _is_text(wanted):
        return _to_text(array, stored, wanted)
    if stored.name in CHARACTERS:
        return parsing.parse_text(array, wanted)
    if wanted.name in _BYTES:
        return strings.fit_bytes(array, wanted) if stored.name in _BYTES else None
    if wanted.name is T.BOOLEAN:
        return numbers.to_boolean(array) if stored.name in INTEGERS else None
    if stored.name in (*TIMESTAMPS, T.DATE, T.TIME) or wanted.name in (*TIMESTAMPS, T.DATE, T.TIME):
        return timestamps.cast_temporal(array, stored, wanted)
    return _to_number(array, stored, wanted)


def _is_text(data_type: AtomicType) -> bool:
    return data_type.name in CHARACTERS


def _to_text(array: pa.Array, stored: AtomicType, wanted: AtomicType) -> pa.Array | None:
    if stored.name in CHARACTERS:
        return strings.fit_text(array, wanted)
    if stored.name in _BYTES:
        return array.cast(pa.string())
    text = printing.atomic_to_text(array, stored)
    if text is None:
        return None
    if stored.name in (*TIMESTAMPS, T.DATE, T.TIME):
        # Java prints these into STRING only.
        return text if strings.is_unlimited(wanted) else None
    return strings.fit_text(text, wanted)


def _to_number(array: pa.Array, stored: AtomicType, wanted: AtomicType) -> pa.Array | None:
    if stored.name is T.BOOLEAN:
        array, stored = array.cast(pa.int8()), AtomicType(T.TINYINT)
    if stored.name is T.DECIMAL:
        return numbers.from_decimal(array, stored, wanted)
    if stored.name in INTEGERS:
        return numbers.from_integer(array, wanted)
    if stored.name in _FLOATS:
        return numbers.from_float(array, wanted)
    return None
