# SPDX-License-Identifier: Apache-2.0
"""Formats values for the text columns of system tables, a column at a time.

Partitions are printed as SQL casts them (``{2024-01-31, 1}``). Keys and statistics are printed as
Java prints its internal values: days for dates, milliseconds for times. Java prints bytes by their
address in memory; this module prints them in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.casts import cast_array
from lakeformat.types.types import STRING, AtomicType, DataType, TypeName
from lakeformat.types.values import Value, values_from_arrow

__all__ = ["cast_text", "internal_text", "join_texts"]

T = TypeName
NANOS_PER_SECOND = 1_000_000_000
_AFTER_YEAR = "-01-31T00:00:00"
_YEAR_DIGITS = 4
_INTEGERS = (T.TINYINT, T.SMALLINT, T.INT, T.BIGINT)
_AS_CAST = {*_INTEGERS, T.BOOLEAN, T.FLOAT, T.DOUBLE, T.DECIMAL, T.CHAR, T.VARCHAR}
_DAYS_AND_MILLIS = {T.DATE, T.TIME}


def cast_text(column: pa.Array, data_type: DataType) -> pa.Array:
    """Return the texts that ``CAST(… AS STRING)`` gives; a null is kept."""
    return cast_array(column, data_type, STRING)


def internal_text(column: pa.Array, data_type: DataType) -> pa.Array:
    """Return the texts that Java's ``toString`` gives for stored values of atomic types; a null is
    kept.

    Bytes are printed in hexadecimal instead.
    """
    name = data_type.name if isinstance(data_type, AtomicType) else None
    if name in _AS_CAST:
        return cast_text(column, data_type)
    if name in _DAYS_AND_MILLIS:
        return column.cast(pa.int32()).cast(pa.string())
    show = _SHOWN.get(name, str) if name is not None else str
    values = values_from_arrow(column, data_type)
    return pa.array([None if value is None else show(value) for value in values], pa.string())


def join_texts(parts: Sequence[pa.Array], *, rows: int, brackets: str) -> pa.Array:
    """Join the parts of each row between two brackets, as in ``{a, b}``; a null part becomes
    ``null``.

    ``rows`` is the number of rows, for the case that ``parts`` is empty.
    """
    shown = [pc.fill_null(part, "null") for part in parts]
    inside = pc.binary_join_element_wise(*shown, ", ") if shown else pa.repeat("", rows)
    return pc.binary_join_element_wise(brackets[0], inside, brackets[1], "")


def _timestamp_text(nanos: int) -> str:
    """Return the text that Java's ``LocalDateTime`` has for a timestamp.

    A fraction has 3, 6 or 9 digits. Without a fraction, zero seconds are omitted.
    """
    seconds, fraction = divmod(nanos, NANOS_PER_SECOND)
    moment = str(np.datetime64(seconds, "s"))
    year, rest = moment[: -len(_AFTER_YEAR)], moment[-len(_AFTER_YEAR) :]
    sign = "-" if year.startswith("-") else "+" if len(year) > _YEAR_DIGITS else ""
    text = f"{sign}{year.lstrip('-').zfill(_YEAR_DIGITS)}{rest}"
    if not fraction:
        return text.removesuffix(":00")
    digits = f"{fraction:09d}"
    shown = next(size for size in (3, 6, 9) if not digits[size:].strip("0"))
    return f"{text}.{digits[:shown]}"


_SHOWN: dict[TypeName, Callable[[Value], str]] = {
    T.TIMESTAMP: _timestamp_text,
    T.TIMESTAMP_LTZ: _timestamp_text,
    **dict.fromkeys((T.BINARY, T.VARBINARY, T.BLOB), bytes.hex),
}
