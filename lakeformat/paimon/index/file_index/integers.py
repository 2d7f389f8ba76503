# SPDX-License-Identifier: Apache-2.0
"""Converts columns, and the values of a predicate, to the 64-bit integers that indexes store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.file_index_types import DATES_AND_TIMES
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = [
    "Column",
    "as_column",
    "as_literals",
    "exact_integers_of",
    "integers_of",
    "is_rounded",
    "require_type",
    "rows_with_values",
]

Column: TypeAlias = pa.Array | pa.ChunkedArray

_MICROS_DIGITS = 6
_EVERY_DATETIME_FITS = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


def require_type(
    data_type: DataType, supported: frozenset[TypeName], index_type: str
) -> AtomicType:
    """Return the type; raise UnsupportedError if the index cannot hold it."""
    if not isinstance(data_type, AtomicType) or data_type.name not in supported:
        raise UnsupportedError(
            f"a {index_type} index cannot hold {type_to_sql(data_type)}; "
            f"it accepts {', '.join(sorted(supported))}"
        )
    return data_type


def is_rounded(data_type: AtomicType) -> bool:
    """Return True for timestamps finer than microseconds, which an index stores rounded down."""
    timestamps = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
    return data_type.name in timestamps and data_type.precision > _MICROS_DIGITS


def as_column(values: Column, data_type: AtomicType) -> pa.Array:
    """Return the values as one Arrow array of ``data_type``; texts and bytes become large_binary.

    Raise InvalidRequestError for values of another type.
    """
    target = to_arrow_type(data_type)
    if pa.types.is_string(target) or pa.types.is_binary(target):
        target = pa.large_binary()
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
            values = values.cast(pa.large_string())
        values = values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise InvalidRequestError(
            f"values of Arrow type {values.type} are not {type_to_sql(data_type)}: {reason}"
        ) from None
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def as_literals(values: Sequence[object], data_type: AtomicType) -> pa.Array:
    """Return the values of a predicate as an Arrow array, without None, which equals nothing.

    Raise InvalidRequestError for a value that the type cannot hold exactly.
    """
    target = to_arrow_type(data_type)
    try:
        literals = pa.array(values, target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as reason:
        raise InvalidRequestError(
            f"{values!r} are not all {type_to_sql(data_type)}: {reason}; "
            "cast them to the type of the column"
        ) from None
    _refuse_rounding(values, literals)
    return as_column(literals.drop_null(), data_type)


def _refuse_rounding(values: Sequence[object], literals: pa.Array) -> None:
    """Raise InvalidRequestError for a value that Arrow changed, such as 1.5 to 1."""
    if literals.type in _EVERY_DATETIME_FITS:
        return
    for value, literal in zip(values, literals, strict=True):
        # A scalar is not converted. NaN does not equal itself.
        is_given = value is not None and not isinstance(value, pa.Scalar)
        if is_given and literal.as_py() != value and value == value:
            raise InvalidRequestError(
                f"{value!r} is not a value of type {literals.type}; cast it to the column's type"
            )


def rows_with_values(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return the positions of the rows that are not null."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.flatnonzero(valid).astype(np.int64)


def integers_of(column: pa.Array, data_type: AtomicType) -> npt.NDArray[np.int64]:
    """Return an integer for each value that is not null.

    Integers, dates and times are unchanged, booleans are 0 or 1, timestamps are milliseconds or
    microseconds, decimals are unscaled, and floats are their bits as in Java, with a single NaN.
    Raise UnsupportedError for a decimal of more than 64 bits.
    """
    column = column.drop_null()
    if data_type.name in (TypeName.FLOAT, TypeName.DOUBLE):
        return _float_bits(column.to_numpy(zero_copy_only=False))
    if data_type.name is TypeName.DECIMAL:
        return _unscaled(column)
    if data_type.name is TypeName.BOOLEAN:
        column = column.cast(pa.int8())
    elif data_type.name in DATES_AND_TIMES:
        column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    # Nanoseconds are rounded down to microseconds, also before 1970.
    return numbers // 1000 if is_rounded(data_type) else numbers


def exact_integers_of(literals: pa.Array, data_type: AtomicType) -> list[int]:
    """Return the integers of a predicate's values; those of a DECIMAL may exceed 64 bits."""
    if data_type.name is not TypeName.DECIMAL:
        return [*integers_of(literals, data_type).tolist()]
    words = _words(literals.drop_null()).tolist()
    return [(high << 64) + low % (1 << 64) for low, high in words]


def _float_bits(values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return values.view(f"i{values.dtype.itemsize}").astype(np.int64)


def _unscaled(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return decimals as unscaled 64-bit integers.

    Raise UnsupportedError if a value needs more bits.
    """
    words = _words(column)
    if not np.array_equal(words[:, 1], words[:, 0] >> 63):
        raise UnsupportedError(
            f"a value of {column.type} has more than 64 bits, and its file index holds at most 64: "
            "remove the column from the options 'file-index.<type>.columns'"
        )
    return np.ascontiguousarray(words[:, 0])


def _words(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return the two halves of each 128-bit number, the lower one first."""
    if not len(column):
        return np.empty((0, 2), np.int64)
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    return words[column.offset : column.offset + len(column)]
