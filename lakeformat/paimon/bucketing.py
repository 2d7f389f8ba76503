# SPDX-License-Identifier: Apache-2.0
"""The functions of option ``bucket-function.type``, which assign rows to buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row.column_parts import as_row_columns, row_parts
from lakeformat.paimon.binary_row.hive_hash import HIVE_TYPES, hive_hashes
from lakeformat.paimon.binary_row.murmur import hash_parts
from lakeformat.types.type_kinds import type_text
from lakeformat.types.types import AtomicType, DataType, TypeName, with_nullability

__all__ = ["BucketFunction", "Buckets", "bucket_function", "keeps_buckets", "row_hashes"]

Buckets: TypeAlias = NDArray[np.int32]
"""The bucket number of each row."""

BucketFunction: TypeAlias = Callable[[Sequence[pa.Array]], Buckets]
"""Returns the bucket of each row, given the columns of the bucket key in the key's order."""

MAX_BUCKETS = (1 << 31) - 1

# This number of rows fits into the processor's cache.
_CHUNK_ROWS = 1 << 15

_MOD_TYPES = (TypeName.INT, TypeName.BIGINT)
_SAME_BYTES = (
    (TypeName.CHAR, TypeName.VARCHAR),
    (TypeName.VARCHAR, TypeName.VARCHAR),
    (TypeName.BINARY, TypeName.VARBINARY),
    (TypeName.VARBINARY, TypeName.VARBINARY),
)
_COMPACT_DIGITS = 18
"""A binary row stores a DECIMAL of at most this many digits as one number of eight bytes."""


def bucket_function(kind: str, key_types: Sequence[DataType], buckets: int) -> BucketFunction:
    """Return the function that assigns rows to ``buckets`` buckets by a key of ``key_types``.

    ``kind`` is the value of ``bucket-function.type``: ``default``, ``mod`` or ``hive``. Raise
    InvalidRequestError for a wrong number of buckets, a key without columns, or key types that the
    function does not take. Raise UnsupportedError for another ``kind``, or for a type that ``hive``
    cannot hash.
    """
    if not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidRequestError(
            f"the number of buckets must be from 1 to {MAX_BUCKETS}, got {buckets}"
        )
    if not key_types:
        raise InvalidRequestError(
            "the bucket key has no column: set 'bucket-key' to one or more columns"
        )
    for data_type in key_types:
        if not isinstance(data_type, AtomicType):
            raise InvalidRequestError(
                f"a column of type {type_text(data_type)} cannot be in a bucket key: choose "
                "columns of numbers, texts, dates or times"
            )
    match kind:
        case "default":
            return lambda columns: _default_buckets(columns, key_types, buckets)
        case "mod":
            _check_mod(key_types)
            return lambda columns: _mod_buckets(columns, key_types, buckets)
        case "hive":
            _check_hive(key_types)
            return lambda columns: _hive_buckets(columns, key_types, buckets)
    raise UnsupportedError(f"bucket-function.type {kind!r} is unknown: use default, mod or hive")


def keeps_buckets(kind: str, old: DataType, new: DataType) -> bool:
    """Return True if rows keep their buckets when a column of the bucket key changes its type.

    ``kind`` is the option ``bucket-function.type``. A change of nullability never moves rows. With
    ``mod``, rows also keep their buckets if INT becomes BIGINT. With any other ``kind``, rows also
    keep their buckets if a text becomes a VARCHAR, or bytes become a VARBINARY, of at least the old
    length. The same is true if a DECIMAL keeps its scale, and the precision of both the old and the
    new type is at most 18.
    """
    if with_nullability(old, nullable=True) == with_nullability(new, nullable=True):
        return True
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        return False
    if kind == "mod":
        return (old.name, new.name) == _MOD_TYPES
    if old.name is new.name is TypeName.DECIMAL:
        return old.scale == new.scale and max(old.precision, new.precision) <= _COMPACT_DIGITS
    return (old.name, new.name) in _SAME_BYTES and old.length <= new.length


def row_hashes(columns: Sequence[pa.Array], types: Sequence[DataType]) -> NDArray[np.int32]:
    """Return the Murmur3 hash of the binary row of each row.

    Raise InvalidRequestError if ``columns`` is empty.
    """
    prepared = as_row_columns(columns, types)
    if not prepared:
        raise InvalidRequestError(
            "rows without a column cannot be hashed: pass at least one column"
        )
    hashes = np.empty(len(prepared[0]), np.int32)
    for start, rows in _chunks(len(hashes)):
        pieces = [column.slice(start, rows) for column in prepared]
        hashes[start : start + rows] = hash_parts(row_parts(pieces, types, rows))
    return hashes


def _default_buckets(
    columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int
) -> Buckets:
    hashes = row_hashes(columns, types)
    result = np.empty(len(hashes), np.int32)
    for start, rows in _chunks(len(hashes)):
        _remainders(hashes[start : start + rows], buckets, result[start : start + rows])
    return result


def _remainders(hashes: NDArray[np.int32], buckets: int, out: Buckets) -> None:
    """Write ``abs(hash % buckets)`` of each hash to ``out``, with Java's signed remainder.

    The result equals the remainder of the hash's absolute value. Absolute values are read as
    unsigned numbers, because that of -2**31 is too large for a signed one. The remainder is
    computed from a quotient, because numpy divides by a scalar faster than it computes a remainder.
    """
    values = np.abs(hashes).view(np.uint32)
    out[:] = values - values // np.uint32(buckets) * np.uint32(buckets)


def _check_mod(types: Sequence[DataType]) -> None:
    if len(types) != 1 or not isinstance(types[0], AtomicType) or types[0].name not in _MOD_TYPES:
        raise InvalidRequestError(
            "bucket-function.type 'mod' takes a bucket key of one INT or BIGINT column, not "
            f"{', '.join(map(type_text, types))}: choose such a column as 'bucket-key', or the "
            "bucket function 'default'"
        )


def _mod_buckets(columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> Buckets:
    """Return the floor modulus of each key by the number of buckets; a null counts as zero."""
    (column,) = as_row_columns(columns, types)
    parts = row_parts([column], types, len(column))
    words = parts.slots[0]
    values = words.view(np.int32 if words.dtype == np.uint32 else np.int64).astype(np.int64)
    divisor = np.int64(buckets)
    remainders: Buckets = (values - np.floor_divide(values, divisor) * divisor).astype(np.int32)
    return remainders


def _check_hive(types: Sequence[DataType]) -> None:
    for data_type in types:
        if not isinstance(data_type, AtomicType) or data_type.name not in HIVE_TYPES:
            raise UnsupportedError(
                f"bucket-function.type 'hive' has no hash for type {type_text(data_type)}: choose "
                "other columns for the bucket key, or the bucket function 'default'"
            )


def _hive_buckets(columns: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> Buckets:
    prepared = as_row_columns(columns, types)
    result = np.empty(len(prepared[0]), np.int32)
    for start, rows in _chunks(len(result)):
        hashes = np.zeros(rows, np.uint32)
        for column, data_type in zip(prepared, types, strict=True):
            hashes *= np.uint32(31)
            hashes += hive_hashes(column.slice(start, rows), data_type)
        positive = hashes & np.uint32(MAX_BUCKETS)
        result[start : start + rows] = positive % np.uint32(buckets)
    return result


def _chunks(rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, _CHUNK_ROWS):
        yield start, min(_CHUNK_ROWS, rows - start)
