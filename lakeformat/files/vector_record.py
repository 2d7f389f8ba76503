# SPDX-License-Identifier: Apache-2.0
"""The record of one deletion vector in a file: length, magic, Roaring bitmap, checksum.

A record has a 32-bit or a 64-bit form, which the magic shows. Iceberg has only the 64-bit form, and
Paimon has both.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pyroaring import BitMap, BitMap64

from lakeformat.errors import InvalidRequestError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.roaring import skip_bitmap
from lakeformat.types.count_text import counted

__all__ = [
    "FRAME_BYTES",
    "DeletionVectorRange",
    "VectorForm",
    "decode_deletion_vector",
    "encode_deletion_vector",
]

FRAME_BYTES = 8
"""The size in bytes of the length before a vector and the checksum after it, together."""
_MAGIC_32 = bytes.fromhex("5e43f2d0")
_MAGIC_64 = bytes.fromhex("d1d33964")
_LARGEST_INT32 = 2**31 - 1
_LAST_KEY = 2**31 - 2
"""The largest value of the upper 32 bits of a position that Java accepts in a 64-bit vector."""
_MAP_HEADER_BYTES = 12
"""The size in bytes of the count and the key before the bitmap, in a 64-bit vector with one
bitmap.
"""


class VectorForm(Enum):
    """The forms of a record; a reader recognises the form by the magic."""

    BITMAP32 = "32-bit"
    """The form for data files of up to 2^31 rows."""
    BITMAP64 = "64-bit"
    """The form of Iceberg tables, and of Paimon tables with ``deletion-vectors.bitmap64``."""


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """The position of the deletion vector of one data file in an index file or a Puffin file."""

    data_file_name: str
    offset: int
    """The offset of the vector's length field, which is stored before the vector in the file."""
    length: int
    """The length in bytes as Java counts it: a 32-bit vector alone, a 64-bit vector with its length
    field and checksum.
    """
    cardinality: int | None = None
    """The number of deleted rows; None in files of older writers."""


def encode_deletion_vector(vector: DeletionVector, form: VectorForm) -> tuple[bytes, int]:
    """Return the bytes of a record, and the length that its manifest must name.

    Raise ``InvalidRequestError`` for a position that the form cannot hold.
    """
    body = _encode_32(vector) if form is VectorForm.BITMAP32 else _encode_64(vector)
    record = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    # In the manifest, only the length of a 64-bit vector includes the frame.
    return record, len(body) if form is VectorForm.BITMAP32 else len(record)


def decode_deletion_vector(
    record: bytes | memoryview,
    found: DeletionVectorRange,
    source: str,
    *,
    remedy: str,
    named_by: str = "the index manifest",
) -> DeletionVector:
    """Decode the vector at the start of ``record``; further bytes after it are ignored.

    Raise ``CorruptTableError`` if the vector is damaged, or contradicts ``found``. The message
    begins with ``source`` and ends with ``remedy``. In the message, ``named_by`` stands for the
    file that ``found`` was read from.
    """
    cursor = ByteCursor(record, source, remedy=remedy, base=found.offset)
    length = cursor.count("bytes of the vector")
    body = cursor.take(length)
    checksum = cursor.little_uint32().to_bytes(4, "little")
    if zlib.crc32(body).to_bytes(4, "big") != checksum:
        raise cursor.error(f"the deletion vector of {found.data_file_name} has a wrong checksum")
    vector, announced = _decode_body(cursor.part(4, length), length)
    if announced != found.length:
        raise cursor.error(
            f"the deletion vector of {found.data_file_name} has length {announced}, "
            f"but {named_by} records {found.length}"
        )
    if found.cardinality not in (None, vector.cardinality):
        raise cursor.error(
            f"the deletion vector of {found.data_file_name} has "
            f"{counted(vector.cardinality, 'row')}, but {named_by} records {found.cardinality}"
        )
    return vector


def _decode_body(cursor: ByteCursor, length: int) -> tuple[DeletionVector, int]:
    """Decode a deletion vector of ``length`` bytes; return it with the length for its manifest.

    For the 64-bit form, the length in the manifest also counts the ``FRAME_BYTES`` around the
    vector.
    """
    magic = bytes(cursor.take(4))
    body = cursor.at(cursor.position).take(length - 4)
    if magic == _MAGIC_32:
        skip_bitmap(cursor)
        # A 64-bit bitmap whose only upper word is 0 has the same bytes after its header.
        form, content, announced = VectorForm.BITMAP32, _map_header(1) + body, length
    elif magic == _MAGIC_64:
        for _ in _walk_map(cursor):
            pass
        form, content, announced = VectorForm.BITMAP64, bytes(body), length + FRAME_BYTES
    else:
        raise cursor.error(f"a deletion vector cannot start with {magic.hex()}")
    if cursor.position != cursor.end:
        raise cursor.error(
            f"the {form.value} deletion vector has {counted(cursor.end - cursor.position, 'byte')} "
            "more than its bitmaps need"
        )
    try:
        return DeletionVector.of(BitMap64.deserialize(content)), announced
    except ValueError as reason:
        raise cursor.error(
            f"the bitmap of the deletion vector cannot be decoded: {reason}"
        ) from None


def _encode_32(vector: DeletionVector) -> bytes:
    if vector.positions and vector.positions.max() > _LARGEST_INT32:
        raise InvalidRequestError(
            f"row {vector.positions.max()} does not fit into a 32-bit deletion vector; set the "
            "table option 'deletion-vectors.bitmap64' to true"
        )
    if not vector.positions:
        return _MAGIC_32 + BitMap().serialize()
    return _MAGIC_32 + _serialize(vector)[_MAP_HEADER_BYTES:]


def _encode_64(vector: DeletionVector) -> bytes:
    """Encode a vector in the 64-bit form: one bitmap for each value of the upper 32 bits.

    As in Java, a value without rows has an empty bitmap if a higher value has rows.
    """
    count = (vector.positions.max() >> 32) + 1 if vector.positions else 0
    content = _serialize(vector)
    if count * _MAP_HEADER_BYTES + len(content) > _LARGEST_INT32:
        raise InvalidRequestError(
            f"a deletion vector up to row {vector.positions.max()} would take more than 2 GiB: "
            "write smaller data files"
        )
    empty = BitMap().serialize()
    parts = [_MAGIC_64, _map_header(count)[:8]]
    expected = 0
    for key, bitmap in _walk_map(ByteCursor(content, "a deletion vector", remedy="")):
        parts += [struct.pack("<I", gap) + empty for gap in range(expected, key)]
        parts += [struct.pack("<I", key), bytes(bitmap)]
        expected = key + 1
    return b"".join(parts)


def _serialize(vector: DeletionVector) -> bytes:
    optimised = BitMap64(vector.positions)
    optimised.run_optimize()
    return optimised.serialize()


def _map_header(count: int) -> bytes:
    return struct.pack("<QI", count, 0)


def _walk_map(cursor: ByteCursor) -> Iterator[tuple[int, memoryview]]:
    """Yield each value of the upper 32 bits of positions, and the bytes of its bitmap.

    Values without rows may be missing.
    """
    previous = -1
    for _ in range(cursor.little_uint64()):
        key = cursor.little_uint32()
        if not previous < key <= _LAST_KEY:
            raise cursor.error(
                f"high word {key} follows {previous}, but high words must ascend and be at most "
                f"{_LAST_KEY}"
            )
        previous = key
        start = cursor.at(cursor.position)
        yield key, start.take(skip_bitmap(cursor))
