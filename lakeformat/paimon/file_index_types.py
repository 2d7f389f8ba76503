# SPDX-License-Identifier: Apache-2.0
"""The column types that each type of file index can hold."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = ["DATES_AND_TIMES", "INDEXABLE", "is_indexable", "is_too_fine"]

DATES_AND_TIMES = frozenset(
    {TypeName.DATE, TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ}
)
_INTEGERS = frozenset({TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT})
_FLOATS = frozenset({TypeName.FLOAT, TypeName.DOUBLE})
_TEXTS = frozenset({TypeName.CHAR, TypeName.VARCHAR})
_BYTES = frozenset({TypeName.BINARY, TypeName.VARBINARY})
_RANGE_BITMAP = "range-bitmap"

INDEXABLE: Mapping[str, frozenset[TypeName]] = {
    "bloom-filter": _TEXTS | _BYTES | _FLOATS | _INTEGERS | DATES_AND_TIMES,
    "bitmap": _TEXTS | _FLOATS | _INTEGERS | DATES_AND_TIMES | {TypeName.BOOLEAN},
    "bsi": _INTEGERS | DATES_AND_TIMES | {TypeName.DECIMAL},
    _RANGE_BITMAP: _TEXTS
    | _FLOATS
    | _INTEGERS
    | DATES_AND_TIMES
    | {TypeName.BOOLEAN, TypeName.DECIMAL},
}
_LONG_DIGITS = 18
_MICROS_DIGITS = 6


def is_indexable(index_type: str, data_type: DataType) -> bool:
    """Return True if the index ``index_type`` supports the type of a column.

    ``index_type`` is ``bloom-filter``, ``bitmap``, ``bsi`` or ``range-bitmap``.
    """
    return (
        isinstance(data_type, AtomicType)
        and data_type.name in INDEXABLE[index_type]
        and not (index_type == _RANGE_BITMAP and is_too_fine(data_type))
    )


def is_too_fine(data_type: AtomicType) -> bool:
    """Return True for decimals of more than 18 digits, and timestamps of more than 6 fractional
    digits.

    A range bitmap stores 64 bits, so it would truncate their values.
    """
    if data_type.name is TypeName.DECIMAL:
        return data_type.precision > _LONG_DIGITS
    timestamps = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
    return data_type.name in timestamps and data_type.precision > _MICROS_DIGITS
