# SPDX-License-Identifier: Apache-2.0
"""Decimals beyond the precision of their type, in memory and in a file.

Java stores a decimal of up to 18 digits as a 64-bit number and never checks its precision. So a sum
in an aggregation table may exceed the type of its column; such a value is read, compacted and kept.
Only Parquet limits the values: decimals of up to nine digits are stored in 32 bits. Java drops the
higher bits; ``refuse_beyond_int32`` raises an error instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_memory import null_mask, numbers
from lakeformat.types.arrow_types import in_full
from lakeformat.types.wide_decimal import exceeds_precision

__all__ = ["check_decimals", "refuse_beyond_int32"]

_INT32_DIGITS = 9
_INT32_END = 1 << 31


def check_decimals(array: pa.Array) -> None:
    """Raise ``ArrowInvalid`` for a decimal that exceeds its type.

    A type of at most 18 digits allows every 64-bit number, as in Java.
    """
    halves = numbers(array)
    exceeds = exceeds_precision(halves[:, 0], halves[:, 1], array.type.precision)
    place = _first(exceeds, array)
    if place is not None:
        raise pa.ArrowInvalid(f"Decimal value {array[place]} does not fit in {array.type}")


def refuse_beyond_int32(rows: pa.Table, key_columns: Sequence[str]) -> None:
    """Raise ``InvalidRequestError`` for a value that does not fit the 32 bits in which Parquet
    stores decimals of at most nine digits.

    The error names the row by ``key_columns``, if there are any.
    """
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if not pa.types.is_decimal(column.type) or column.type.precision > _INT32_DIGITS:
            continue
        array = column.cast(in_full(column.type)).combine_chunks()
        unscaled = numbers(array)[:, 0].view(np.int64)
        place = _first((unscaled < -_INT32_END) | (unscaled >= _INT32_END), array)
        if place is None:
            continue
        key = ", ".join(f"{key} = {rows.column(key)[place]}" for key in key_columns)
        raise InvalidRequestError(
            f"column {name!r}{f' of the row {key}' if key else ''} is {array[place]}: it exceeds "
            f"{array.type} and does not fit into the 32 bits that a Parquet file has for this "
            "type; give the column a precision above 9, or set 'file.format' to avro"
        )


def _first(wrong: npt.NDArray[np.bool_], array: pa.Array) -> int | None:
    """Return the first index at which ``wrong`` is True and the value is not null; None if there is
    none.
    """
    nulls = null_mask(array)
    if nulls is not None:
        wrong = wrong & ~nulls
    return int(np.argmax(wrong)) if wrong.any() else None
