# SPDX-License-Identifier: Apache-2.0
"""Checks that Arrow arrays fit logical types, and converts them to the Arrow types that the
encoders of files take.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_kinds import is_bytes, is_text, type_text
from lakeformat.types.types import AtomicType, DataType, RowType, VectorType

__all__ = ["as_column", "column_type"]

Check = Callable[[pa.DataType], bool]

_TEXT: list[Check] = [
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
]
_BINARY: list[Check] = [
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
]
_KINDS: list[list[Check]] = [
    [pa.types.is_boolean],
    [pa.types.is_integer],
    [pa.types.is_floating],
    [pa.types.is_decimal],
    [pa.types.is_date],
    [pa.types.is_time],
    [pa.types.is_timestamp],
    _TEXT,
    _BINARY,
    [pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list],
    [pa.types.is_map],
    [pa.types.is_struct],
]
_WITH_LONG_OFFSETS = (pa.types.is_large_string, pa.types.is_large_binary)


def column_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a column in memory.

    BLOB, GEOMETRY and GEOGRAPHY become binary; ``to_arrow_type`` refuses these types.
    """
    if is_bytes(data_type):
        return pa.string() if is_text(data_type) else pa.binary()
    return to_arrow_type(data_type)


def as_column(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return ``array`` in the Arrow type that the encoders of files take for ``data_type``.

    Strings and binaries may keep their 64-bit offsets. The parts of constructed types are not
    checked here: the caller converts them one by one. Raise ``InvalidRequestError`` if the array
    does not fit.
    """
    if not isinstance(array, pa.Array):
        raise InvalidRequestError(f"a column must be one Arrow array, got {type(array).__name__}")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(data_type, VectorType):
        return _as_kind(array, pa.list_(pa.int8()), data_type)
    wanted = column_type(data_type)
    if array.type == wanted:
        return array
    array = _as_kind(array, wanted, data_type)
    if not isinstance(data_type, AtomicType) or pa.types.is_struct(wanted):
        return array
    if any(is_long(array.type) for is_long in _WITH_LONG_OFFSETS):
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as reason:
        raise _refusal(array, data_type, f": {reason}") from None


def _as_kind(array: pa.Array, wanted: pa.DataType, data_type: DataType) -> pa.Array:
    """Return ``array``; if its Arrow type is ``null``, return nulls of the type ``wanted`` instead.

    Raise ``InvalidRequestError`` if the two types differ in kind, such as text and number. Without
    this error, Arrow's cast could convert text to numbers.
    """
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    for kind in _KINDS:
        if any(check(wanted) for check in kind):
            if not any(check(array.type) for check in kind):
                raise _refusal(array, data_type)
            break
    if isinstance(data_type, RowType) and array.type.num_fields != len(data_type.fields):
        raise _refusal(array, data_type, f" of {len(data_type.fields)} fields")
    return array


def _refusal(array: pa.Array, data_type: DataType, more: str = "") -> InvalidRequestError:
    return InvalidRequestError(
        f"an Arrow array of type {array.type} does not fit column type {type_text(data_type)}{more}"
    )
