# SPDX-License-Identifier: Apache-2.0
"""Values as ``bitmap`` and ``range-bitmap`` store them, and keys that sort like the values.

A key is an int, or bytes for texts. Floats sort as in Java: -0.0 before 0.0, and NaN last; a
predicate with a zero finds both zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.paimon.index.file_index.integers import (
    Column,
    as_column,
    as_literals,
    integers_of,
    rows_with_values,
)
from lakeformat.paimon.index.file_index.packed_values import PackedValues
from lakeformat.types.types import AtomicType, TypeName

__all__ = ["DistinctValues", "Key", "distinct_values", "keys_equal_to", "read_key", "width_of"]

Key = int | bytes

_WIDTHS = {
    TypeName.BOOLEAN: 1,
    TypeName.TINYINT: 1,
    TypeName.SMALLINT: 2,
    TypeName.INT: 4,
    TypeName.DATE: 4,
    TypeName.TIME: 4,
    TypeName.BIGINT: 8,
    TypeName.DECIMAL: 8,
    TypeName.TIMESTAMP: 8,
    TypeName.TIMESTAMP_LTZ: 8,
    TypeName.FLOAT: 4,
    TypeName.DOUBLE: 8,
}
_FLOATS = (TypeName.FLOAT, TypeName.DOUBLE)
_LENGTH_BYTES = 4
_MINUS_ZERO, _ZERO = -1, 0
"""The keys of the floats -0.0 and 0.0."""


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The distinct values of a column in their order, and the index of each row's value."""

    row_count: int
    null_rows: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    """The positions of the rows that are not null."""
    codes: npt.NDArray[np.int64]
    """For each of ``rows``, the index of its value in ``values``."""
    values: PackedValues
    """The distinct values as the index stores them."""


def width_of(data_type: AtomicType) -> int | None:
    """Return the number of bytes of each stored value; None for texts, which have a length in
    front.
    """
    return _WIDTHS.get(data_type.name)


def distinct_values(column: Column, data_type: AtomicType) -> DistinctValues:
    """Return the distinct values of a column, sorted, and the index of each row's value."""
    array = as_column(column, data_type)
    rows = rows_with_values(array)
    null_rows = np.setdiff1d(np.arange(len(array)), rows, assume_unique=True)
    width = width_of(data_type)
    if width is None:
        codes, values = _distinct_texts(array.drop_null())
    else:
        keys, codes = np.unique(_keys(array, data_type), return_inverse=True)
        numbers = _turn_floats(keys, data_type)
        values = PackedValues.of_integers(numbers, width)
    return DistinctValues(len(array), null_rows, rows, codes, values)


def keys_equal_to(literals: Sequence[object], data_type: AtomicType) -> list[Key]:
    """Return the sorted keys of the values that equal one of ``literals``; None equals nothing.

    Raise InvalidRequestError for a literal that the type cannot hold exactly.
    """
    array = as_literals(literals, data_type)
    if width_of(data_type) is None:
        return sorted(set(array.to_pylist()))
    keys = _keys(array, data_type)
    if data_type.name in _FLOATS and np.isin(keys, (_MINUS_ZERO, _ZERO)).any():
        keys = np.append(keys, (_MINUS_ZERO, _ZERO))
    return [*np.unique(keys).tolist()]


def read_key(cursor: ByteCursor, data_type: AtomicType) -> Key:
    """Read the stored value at the cursor, and return its key.

    Raise CorruptTableError if the index ends before the value does.
    """
    width = width_of(data_type)
    if width is None:
        return bytes(cursor.take(cursor.count("bytes of text")))
    stored = cursor.take(width)
    if data_type.name in _FLOATS:
        # All NaNs become one NaN.
        values = np.frombuffer(stored, f">f{width}").astype(f"f{width}")
        return int(_keys(pa.array(values), data_type)[0])
    return int.from_bytes(stored, "big", signed=True)


def _keys(column: pa.Array, data_type: AtomicType) -> npt.NDArray[np.int64]:
    return _turn_floats(integers_of(column, data_type), data_type)


def _turn_floats(numbers: npt.NDArray[np.int64], data_type: AtomicType) -> npt.NDArray[np.int64]:
    """Convert the bits of floats to keys that sort as the floats do, or such keys back to bits.

    Both directions are the same operation. It is needed because, as integers, the bits of negative
    floats sort in reverse. Numbers of other types are unchanged.
    """
    if data_type.name not in _FLOATS:
        return numbers
    width = _WIDTHS[data_type.name]
    magnitude = (1 << (8 * width - 1)) - 1
    return np.where(numbers < 0, numbers ^ magnitude, numbers)


def _distinct_texts(texts: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], PackedValues]:
    encoded = texts.dictionary_encode()
    # Arrow compares unsigned bytes, as Java's BinaryString does.
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    texts_in_order = PackedValues.of_binary(encoded.dictionary.take(order))
    lengths = PackedValues.of_integers(texts_in_order.lengths, _LENGTH_BYTES)
    return ranks[encoded.indices.to_numpy()], lengths.joined(texts_in_order)
