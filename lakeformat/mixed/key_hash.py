# SPDX-License-Identifier: Apache-2.0
"""Hashes of primary keys. They are the same as Amoro's, which hashes values as Java does.

All values of a column are hashed at once. The arithmetic is modulo 2**32, as for an int in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.types.arrow_memory import byte_spans, null_mask, numbers

__all__ = ["KeyHashes", "hash_keys", "require_hashable"]

KeyHashes: TypeAlias = NDArray[np.int64]
"""Hashes from 0 to 2**31 - 1."""

_Codes: TypeAlias = NDArray[np.uint32]
_Words: TypeAlias = NDArray[np.int64]
_Hash: TypeAlias = Callable[[pa.Array], _Codes]

_FACTOR = 31
_TRUE, _FALSE = 1231, 1237
_SHIFT = np.uint64(32)
_HALF = np.uint64(0xFFFFFFFF)
_GREATEST = 2**31 - 1
_SIGN = np.uint64(1 << 63)
_FLOAT_SIZE = 4
_NAN = {_FLOAT_SIZE: np.uint64(0x7FC00000), 8: np.uint64(0x7FF8000000000000)}
"""The bits to which Java changes every NaN, by the size of the number."""
_CONTINUES, _CONTINUATION = 0xC0, 0x80
_FIRST_OF_FOUR = 0xF0


def hash_keys(fields: Sequence[Field], columns: Sequence[pa.Array]) -> KeyHashes:
    """Return the hash of each key; ``columns`` are the key columns in the order of ``fields``."""
    found = np.ones(len(columns[0]), np.uint32)
    for field, column in zip(fields, columns, strict=True):
        codes = _hash_of(field)(column)
        if (nulls := null_mask(column)) is not None:
            codes[nulls] = 0
        found = found * np.uint32(_FACTOR) + codes
    # Java's smallest int has no positive counterpart; Amoro takes the largest int for it.
    return np.minimum(np.abs(found.view(np.int32).astype(np.int64)), _GREATEST)


def require_hashable(fields: Sequence[Field]) -> None:
    """Raise ``UnsupportedError`` if a key column has a type for which Amoro has no hash."""
    for field in fields:
        _hash_of(field)


def _hash_of(field: Field) -> _Hash:
    kind = field.type
    if isinstance(kind, PrimitiveType):
        if kind.name == "decimal":
            return partial(_of_decimals, scale=kind.scale)
        if kind.name in _HASHES:
            to_arrow_type(kind)
            return _HASHES[kind.name]
    shown = str(kind)
    instead = _INSTEAD.get(shown, "STRING")
    raise UnsupportedError(
        f"the key column {field.name!r} has the type {shown}, for which Amoro defines no hash. "
        "Create a table whose primary_key has only columns of numbers, texts, bytes, dates or "
        f"times, or declare this column as ({field.name!r}, {instead!r}). If the table exists "
        "already, its rows can be read: convert the key column of table.scan().to_arrow(), and "
        "write the rows to the new table"
    )


def _of_ints(column: pa.Array) -> _Codes:
    return numbers(column).astype(np.int32).view(np.uint32)


def _of_longs(column: pa.Array) -> _Codes:
    return _folded(numbers(column).astype(np.int64).view(np.uint64))


def _folded(words: NDArray[np.uint64]) -> _Codes:
    folded: _Codes = (words ^ (words >> _SHIFT)).astype(np.uint32)
    return folded


def _of_booleans(column: pa.Array) -> _Codes:
    return np.where(numbers(column), np.uint32(_TRUE), np.uint32(_FALSE))


def _of_floats(column: pa.Array) -> _Codes:
    values = numbers(column)
    size = values.dtype.itemsize
    bits = values.view(f"u{size}").astype(np.uint64)
    bits[np.isnan(values)] = _NAN[size]
    return bits.astype(np.uint32) if size == _FLOAT_SIZE else _folded(bits)


def _of_decimals(column: pa.Array, scale: int) -> _Codes:
    """Hash the absolute unscaled value in words of 32 bits, then its sign and its scale."""
    halves = numbers(column).astype(np.uint64)
    low, high = halves[:, 0].copy(), halves[:, 1].copy()
    negative = (high & _SIGN) != 0
    high[negative] = ~high[negative] + (low[negative] == 0)
    low[negative] = ~low[negative] + np.uint64(1)
    code = np.zeros(len(low), np.uint32)
    for word in (high >> _SHIFT, high & _HALF, low >> _SHIFT, low & _HALF):
        code = code * np.uint32(_FACTOR) + word.astype(np.uint32)
    code[negative] = np.uint32(0) - code[negative]
    return code * np.uint32(_FACTOR) + np.uint32(scale)


def _of_uuids(column: pa.Array) -> _Codes:
    data, starts, ends = _fixed_spans(column)
    halves = data[int(starts[0]) : int(ends[-1])] if len(starts) else data[:0]
    words = halves.view(">u8").astype(np.uint64)
    return _folded(words[0::2] ^ words[1::2])


def _of_bytes(column: pa.Array) -> _Codes:
    """Hash signed bytes from the end to the beginning, as Java's ``ByteBuffer`` does."""
    is_fixed = pa.types.is_fixed_size_binary(column.type)
    data, starts, ends = _fixed_spans(column) if is_fixed else byte_spans(column)
    first, last = (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)
    units = data[first:last].view(np.int8).astype(np.int64)
    return _polynomials(units, starts - first, ends - first, from_end=True, start=1)


def _of_strings(column: pa.Array) -> _Codes:
    """Hash the UTF-16 units of each text, as Java's ``String`` does."""
    data, starts, ends = byte_spans(column)
    first, last = (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)
    content, starts, ends = data[first:last], starts - first, ends - first
    if not (content >= _CONTINUATION).any():
        return _polynomials(content.astype(np.int64), starts, ends)
    text = content.tobytes().decode("utf-8", "surrogatepass")
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").astype(np.int64)
    # The first byte of a character counts its units: two for a character of four bytes.
    counts = ((content & _CONTINUES) != _CONTINUATION).astype(np.int64)
    counts += content >= _FIRST_OF_FOUR
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return _polynomials(units, before[starts], before[ends])


def _polynomials(
    units: _Words, starts: _Words, ends: _Words, *, from_end: bool = False, start: int = 0
) -> _Codes:
    """Return the hash of each value, as Java calculates it.

    The hash of a value with n units, such as bytes, is ``start * 31**n`` plus the sum of the units,
    each multiplied by a power of 31. The last unit is multiplied by 31**0, the unit before it by
    31**1, and so on; with ``from_end`` the first unit is multiplied by 31**0, the next by 31**1.
    ``units`` has the units of all values. The units of each value begin at its position in
    ``starts``, and end before its position in ``ends``.
    """
    sizes = ends - starts
    powers = np.full(int(sizes.max(initial=0)) + 1, _FACTOR, np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    places = np.arange(len(units), dtype=np.int64)
    of_value = np.repeat(starts if from_end else ends - 1, sizes)
    terms = units.astype(np.uint32) * powers[np.abs(places - of_value)]
    sums = np.concatenate([np.zeros(1, np.uint32), np.cumsum(terms, dtype=np.uint32)])
    code: _Codes = sums[ends] - sums[starts] + np.uint32(start) * powers[sizes]
    return code


def _fixed_spans(column: pa.Array) -> tuple[NDArray[np.uint8], _Words, _Words]:
    width = column.type.byte_width
    buffer = column.buffers()[1]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    starts = np.arange(len(column), dtype=np.int64) * width + column.offset * width
    return data, starts, starts + width


_INSTEAD = {"timestamp_ns": "TIMESTAMP(6)", "timestamptz_ns": "TIMESTAMP_LTZ(6)"}
"""The SQL types that the error suggests for these types; for other unhashable types, STRING."""
_HASHES: dict[str, _Hash] = {
    "boolean": _of_booleans,
    "int": _of_ints,
    "long": _of_longs,
    "float": _of_floats,
    "double": _of_floats,
    "date": _of_ints,
    "time": _of_longs,
    "timestamp": _of_longs,
    "timestamptz": _of_longs,
    "string": _of_strings,
    "binary": _of_bytes,
    "fixed": _of_bytes,
    "uuid": _of_uuids,
}
