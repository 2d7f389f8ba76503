# SPDX-License-Identifier: Apache-2.0
"""Deletion-vector index files: the deleted rows of each data file.

One byte of version, then a record per data file: length, magic, Roaring bitmap, checksum. The
index manifest has the place of each record; the magic identifies one of two forms.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import IO

from pyroaring import BitMap, BitMap64

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.paimon.index.byte_cursor import ByteCursor
from lakeformat.paimon.index.damage import RESTORE, missing_file
from lakeformat.paimon.index.deletion_vector import DeletionVector
from lakeformat.paimon.index.roaring import skip_bitmap
from lakeformat.paimon.metadata.index_manifest import DeletionVectorRange
from lakeformat.storage import Storage

__all__ = [
    "VectorForm",
    "decode_deletion_vector",
    "encode_deletion_vectors",
    "read_deletion_vectors",
]

FILE_VERSION = 1
_MAGIC_32 = bytes.fromhex("5e43f2d0")
_MAGIC_64 = bytes.fromhex("d1d33964")
_FRAME_BYTES = 8
"""Total size of the length before a record and of the checksum after it."""
_LARGEST_INT32 = 2**31 - 1
_LAST_KEY = 2**31 - 2
"""The highest upper word of a position that Java accepts in a 64-bit vector."""
_MAP_HEADER_BYTES = 12
"""Size of the count and the key before the only bitmap of a serialized 64-bit bitmap."""


class VectorForm(Enum):
    """The form of a vector; readers identify it by the magic."""

    BITMAP32 = "32-bit"
    """For files of up to 2^31 - 1 rows; every reader knows it."""
    BITMAP64 = "64-bit"
    """``deletion-vectors.bitmap64``; pypaimon cannot read it."""


def encode_deletion_vectors(
    vectors: Mapping[str, DeletionVector], form: VectorForm
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """Return the content of one index file, and the range of each data file's vector in it."""
    parts = [bytes([FILE_VERSION])]
    ranges = []
    offset = len(parts[0])
    for data_file_name, vector in vectors.items():
        body = _encode_32(vector) if form is VectorForm.BITMAP32 else _encode_64(vector)
        if offset + len(body) + _FRAME_BYTES > _LARGEST_INT32:
            raise InvalidRequestError(
                f"the deletion vectors of {len(vectors)} data files do not fit into one index "
                "file of 2 GiB; write fewer data files into it"
            )
        parts += [struct.pack(">I", len(body)), body, struct.pack(">I", zlib.crc32(body))]
        # In the manifest, only the length of a 64-bit vector includes the frame.
        length = len(body) if form is VectorForm.BITMAP32 else len(body) + _FRAME_BYTES
        ranges.append(DeletionVectorRange(data_file_name, offset, length, vector.cardinality))
        offset += len(body) + _FRAME_BYTES
    return b"".join(parts), tuple(ranges)


def read_deletion_vectors(
    storage: Storage, path: str, ranges: Iterable[DeletionVectorRange]
) -> dict[str, DeletionVector]:
    """Return the vectors of some data files of one index file, by data file name."""
    uri = storage.uri(path)
    try:
        stream = storage.open_input(path)
    except NotFoundError:
        raise missing_file(uri, "an index manifest") from None
    with stream:
        size = stream.seek(0, 2)
        return {
            found.data_file_name: decode_deletion_vector(
                _read_record(stream, found, size, uri), found, uri
            )
            for found in sorted(ranges, key=lambda found: found.offset)
        }


def decode_deletion_vector(
    record: bytes | memoryview, found: DeletionVectorRange, source: str
) -> DeletionVector:
    """Decode the vector at the start of ``record``; more bytes may follow."""
    cursor = ByteCursor(record, source, remedy=RESTORE, base=found.offset)
    length = cursor.count("bytes of vector")
    body = cursor.take(length)
    checksum = cursor.little_uint32().to_bytes(4, "little")
    if zlib.crc32(body).to_bytes(4, "big") != checksum:
        raise cursor.error(f"the deletion vector of {found.data_file_name} has a wrong checksum")
    vector, announced = _decode_body(cursor.part(4, length), length)
    if announced != found.length:
        raise cursor.error(
            f"the deletion vector of {found.data_file_name} has length {announced}, "
            f"but the index manifest has {found.length}"
        )
    if found.cardinality not in (None, vector.cardinality):
        raise cursor.error(
            f"the deletion vector of {found.data_file_name} has {vector.cardinality} rows, "
            f"but the index manifest has {found.cardinality}"
        )
    return vector


def _read_record(stream: IO[bytes], found: DeletionVectorRange, size: int, uri: str) -> bytes:
    """Read a record of either form; for a 64-bit vector this reads a few bytes too many."""
    if found.offset < 1 or found.length < 0 or found.offset + found.length > size:
        raise CorruptTableError(
            f"{uri} has {size} bytes, but the deletion vector of {found.data_file_name} should "
            f"be {found.length} bytes at byte {found.offset}; {RESTORE}"
        )
    stream.seek(found.offset)
    return stream.read(min(found.length + _FRAME_BYTES, size - found.offset))


def _decode_body(cursor: ByteCursor, length: int) -> tuple[DeletionVector, int]:
    """Return the vector, and the length that the manifest must have for it."""
    magic = bytes(cursor.take(4))
    body = cursor.at(cursor.position).take(length - 4)
    if magic == _MAGIC_32:
        skip_bitmap(cursor)
        # A 64-bit bitmap whose only upper word is 0 has the same bytes after its header.
        form, content, announced = VectorForm.BITMAP32, _map_header(1) + body, length
    elif magic == _MAGIC_64:
        for _ in _walk_map(cursor):
            pass
        form, content, announced = VectorForm.BITMAP64, bytes(body), length + _FRAME_BYTES
    else:
        raise cursor.error(f"a deletion vector cannot start with {magic.hex()}")
    if cursor.position != cursor.end:
        raise cursor.error(
            f"{cursor.end - cursor.position} bytes are left in a {form.value} vector"
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
            f"row {vector.positions.max()} is beyond a 32-bit deletion vector; "
            "set deletion-vectors.bitmap64"
        )
    if not vector.positions:
        return _MAGIC_32 + BitMap().serialize()
    return _MAGIC_32 + _serialize(vector)[_MAP_HEADER_BYTES:]


def _encode_64(vector: DeletionVector) -> bytes:
    """Encode a bitmap for every upper word from 0 to the highest, as Java does."""
    count = (vector.positions.max() >> 32) + 1 if vector.positions else 0
    content = _serialize(vector)
    if count * _MAP_HEADER_BYTES + len(content) > _LARGEST_INT32:
        raise InvalidRequestError(f"row {vector.positions.max()} is beyond any deletion vector")
    empty = BitMap().serialize()
    parts = [_MAGIC_64, _map_header(count)[:8]]
    expected = 0
    for key, bitmap in _walk_map(ByteCursor(content, "a deletion vector", remedy=RESTORE)):
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
    """Yield each upper word, which may leave gaps, with the bytes of its bitmap."""
    previous = -1
    for _ in range(cursor.little_uint64()):
        key = cursor.little_uint32()
        if not previous < key <= _LAST_KEY:
            raise cursor.error(f"high word {key} follows {previous}, but they must ascend")
        previous = key
        start = cursor.at(cursor.position)
        yield key, start.take(skip_bitmap(cursor))
