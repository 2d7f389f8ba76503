# SPDX-License-Identifier: Apache-2.0
"""The index ``bloom-filter``: can prove that a column does not have a value.

It cannot prove that the column has the value.
The filter is an int32 with the number of hash functions, then the bits: bit i is in byte i / 8,
lowest bit first.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from lakeformat.errors import InvalidRequestError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.paimon.file_index_types import INDEXABLE
from lakeformat.paimon.index.file_index.container import REBUILD
from lakeformat.paimon.index.file_index.integers import (
    Column,
    as_column,
    as_literals,
    integers_of,
    require_type,
)
from lakeformat.types.count_text import counted
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = [
    "BLOOM_FILTER",
    "BloomFilter",
    "BloomFilterWriter",
    "encode_bloom_filter",
    "read_bloom_filter",
]

BLOOM_FILTER = "bloom-filter"
DEFAULT_ITEMS = 1_000_000
DEFAULT_FALSE_POSITIVES = 0.1

_TEXTS = frozenset({TypeName.CHAR, TypeName.VARCHAR, TypeName.BINARY, TypeName.VARBINARY})
_FLOATS = frozenset({TypeName.FLOAT, TypeName.DOUBLE})
_MOST_BITS = 2**31 - 8
_MOST_HASH_FUNCTIONS = 1_100
"""A filter with more hash functions is damaged.

Even the smallest false-positive rate needs fewer.
"""


def encode_bloom_filter(
    column: Column,
    data_type: DataType,
    *,
    items: int = DEFAULT_ITEMS,
    false_positives: float = DEFAULT_FALSE_POSITIVES,
) -> bytes:
    """Return the Bloom filter of a whole column.

    ``items`` is the expected number of values, ``false_positives`` a rate between 0 and 1. The
    errors are those of ``BloomFilterWriter``.
    """
    writer = BloomFilterWriter(data_type, items=items, false_positives=false_positives)
    writer.add(column)
    return writer.encode()


class BloomFilterWriter:
    """Builds the filter of a column part by part; it does not keep the values."""

    def __init__(
        self,
        data_type: DataType,
        *,
        items: int = DEFAULT_ITEMS,
        false_positives: float = DEFAULT_FALSE_POSITIVES,
    ) -> None:
        """Create an empty filter for ``items`` values with a false-positive rate between 0 and 1.

        Raise UnsupportedError if the filter does not support the data type. Raise
        InvalidRequestError for less than one item, for a rate outside of this range, or if the
        filter needs more than 2**31 - 8 bits.
        """
        self._type = require_type(data_type, INDEXABLE[BLOOM_FILTER], BLOOM_FILTER)
        bit_count, self._hash_count = _size(items, false_positives)
        self._bits = np.zeros(bit_count, bool)

    def add(self, column: Column) -> None:
        """Add values in any order; nulls are ignored."""
        hashes = _hash(as_column(column, self._type), self._type)
        for number in range(1, self._hash_count + 1):
            self._bits[_places(hashes, number, len(self._bits))] = True

    def encode(self) -> bytes:
        body = np.packbits(self._bits, bitorder="little").tobytes()
        return struct.pack(">i", self._hash_count) + body


def read_bloom_filter(body: bytes, data_type: DataType, source: str) -> BloomFilter:
    """Read the filter of a column of ``data_type``; ``source`` names the filter in errors.

    Raise CorruptTableError for a damaged filter, and UnsupportedError if the filter does not
    support the data type.
    """
    data_type = require_type(data_type, INDEXABLE[BLOOM_FILTER], BLOOM_FILTER)
    cursor = ByteCursor(body, source, remedy=REBUILD)
    hash_count = cursor.count("hash functions", at_most=_MOST_HASH_FUNCTIONS)
    if hash_count == 0:
        raise cursor.error("it has no hash functions")
    if cursor.position == cursor.end:
        raise cursor.error(f"it has {counted(hash_count, 'hash function')}, but no bits")
    return BloomFilter(data_type, hash_count, np.frombuffer(body, np.uint8)[cursor.position :])


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """The values that a column may have; nulls are not stored, so they are never excluded."""

    data_type: AtomicType
    hash_count: int
    bits: npt.NDArray[np.uint8]

    def may_contain(self, value: object) -> bool:
        """Return False only if no row has the value; return True for None.

        Raise InvalidRequestError for a value that the type of the column cannot hold exactly.
        """
        literals = as_literals([value], self.data_type)
        if not len(literals):
            return True
        if self.data_type.name in _FLOATS and literals[0].as_py() == 0:
            # The two zeros are equal in a predicate, but have different hashes.
            literals = pa.array([0.0, -0.0], literals.type)
        hashes = _hash(literals, self.data_type)
        found = np.ones(len(hashes), bool)
        for number in range(1, self.hash_count + 1):
            place = _places(hashes, number, 8 * len(self.bits))
            found &= (self.bits[place >> 3] >> (place & 7)) & 1 == 1
        return bool(found.any())


def _size(items: int, false_positives: float) -> tuple[int, int]:
    """Return the number of bits and of hash functions, computed exactly as in Java.

    Raise InvalidRequestError for numbers from which no filter can be made.
    """
    if items < 1 or not 0 < false_positives < 1:
        raise InvalidRequestError(
            f"a bloom filter for {counted(items, 'item')} with a false-positive rate of "
            f"{false_positives} cannot exist: set 'file-index.bloom-filter.<column>.items' to at "
            "least 1, and 'file-index.bloom-filter.<column>.fpp' to a rate between 0 and 1"
        )
    needed = -items * math.log(false_positives) / (math.log(2) * math.log(2))
    if needed > _MOST_BITS:
        raise InvalidRequestError(
            f"a bloom filter for {items} items with a false-positive rate of {false_positives} "
            f"needs {needed:.0f} bits, but at most {_MOST_BITS} are possible: lower the option "
            "'file-index.bloom-filter.<column>.items', or raise "
            "'file-index.bloom-filter.<column>.fpp'"
        )
    bit_count = int(needed) + 8 - int(needed) % 8
    return bit_count, max(1, math.floor(bit_count / items * math.log(2) + 0.5))


def _places(hashes: npt.NDArray[np.int64], number: int, bit_count: int) -> npt.NDArray[np.int64]:
    """Return the bit position of each hash for hash function ``number``.

    The overflow of int32 is part of the format.
    """
    low, high = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    combined = low + np.int32(number) * high
    return np.where(combined < 0, ~combined, combined).astype(np.int64) % bit_count


def _hash(column: pa.Array, data_type: AtomicType) -> npt.NDArray[np.int64]:
    """Return a 64-bit hash of each value that is not null."""
    if data_type.name not in _TEXTS:
        return _mix(integers_of(column, data_type))
    values = column.drop_null().to_pylist()
    hashes = np.fromiter(map(xxhash.xxh64_intdigest, values), np.uint64, len(values))
    return hashes.view(np.int64)


def _mix(key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return Thomas Wang's hash of 64-bit integers, with overflow and arithmetic shifts."""
    key = ~key + (key << 21)
    key ^= key >> 24
    key = key + (key << 3) + (key << 8)
    key ^= key >> 14
    key = key + (key << 2) + (key << 4)
    key ^= key >> 28
    return key + (key << 31)
