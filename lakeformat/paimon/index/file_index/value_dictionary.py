# SPDX-License-Identifier: Apache-2.0
"""The dictionary of a range bitmap: sorted values in chunks; the code of a value is its index."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.paimon.file_index_types import INDEXABLE, is_too_fine
from lakeformat.paimon.index.file_index.integers import require_type
from lakeformat.paimon.index.file_index.packed_values import PackedValues
from lakeformat.paimon.index.file_index.stored_values import Key, read_key, width_of
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = ["ValueDictionary", "encode_dictionary", "read_dictionary", "require_coded_type"]

FORMAT_VERSION = 1
DEFAULT_CHUNK_SIZE = 16 * 1024
_SMALL_TYPES = frozenset({TypeName.BOOLEAN, TypeName.TINYINT, TypeName.SMALLINT})
"""Types with few distinct values; by default each of their chunks has a single value."""
_INT_BYTES = 4


def require_coded_type(data_type: DataType, index_type: str) -> AtomicType:
    """Return the type if the index can hold all its values; raise UnsupportedError otherwise."""
    found = require_type(data_type, INDEXABLE[index_type], index_type)
    if is_too_fine(found):
        raise UnsupportedError(
            f"a {index_type} index cannot hold {type_to_json(found)}; "
            "it accepts DECIMAL up to 18 digits and timestamps up to microseconds"
        )
    return found


def encode_dictionary(values: PackedValues, data_type: AtomicType, chunk_size: int | None) -> bytes:
    """Return the dictionary of ``values``, which must be sorted; ``chunk_size`` is in bytes.

    ``chunk_size=None`` means 16 KiB, or one value per chunk for BOOLEAN, TINYINT and SMALLINT.
    Raise InvalidRequestError for a negative size.
    """
    if chunk_size is None:
        chunk_size = 0 if data_type.name in _SMALL_TYPES else DEFAULT_CHUNK_SIZE
    if chunk_size < 0:
        raise InvalidRequestError(
            f"a chunk of a range bitmap cannot have {chunk_size} bytes: set "
            "'file-index.range-bitmap.<column>.chunk-size' to 0 or more"
        )
    headers: list[bytes] = []
    bodies: list[bytes] = []
    code, key_offset = 0, 0
    while code < len(values):
        end = _chunk_end(values, code, data_type, chunk_size)
        tail, body = _encode_chunk(values, code, end, data_type)
        fields = struct.pack(">iii", code, key_offset, end - code - 1)
        first = values.bytes_of(code, code + 1)
        headers.append(struct.pack(">b", FORMAT_VERSION) + first + fields + tail)
        bodies.append(body)
        code, key_offset = end, key_offset + len(body)
    starts, total = [], 0
    for header in headers:
        starts.append(struct.pack(">i", total))
        total += len(header)
    lengths = (len(headers), _INT_BYTES * len(headers), total)
    head = struct.pack(">bIII", FORMAT_VERSION, *lengths)
    return b"".join([struct.pack(">i", len(head)), head, *starts, *headers, *bodies])


def _chunk_end(values: PackedValues, code: int, data_type: AtomicType, chunk_size: int) -> int:
    """Return the code after the last value of the chunk that begins with ``code``.

    The first value does not count for ``chunk_size``, because it is in the header.
    """
    room = values.offsets[code + 1] + chunk_size
    end = int(bisect_right(values.offsets, room)) - 1
    if width_of(data_type) is None:
        # The offsets of texts may take as many bytes as the texts.
        end = min(end, code + 1 + chunk_size // _INT_BYTES)
    return max(end, code + 1)


def _encode_chunk(
    values: PackedValues, code: int, end: int, data_type: AtomicType
) -> tuple[bytes, bytes]:
    """Return the last two fields of a chunk's header, and the chunk's values without the first."""
    keys = values.bytes_of(code + 1, end)
    width = width_of(data_type)
    if width is not None:
        return struct.pack(">ii", len(keys), width), keys
    offsets = values.offsets[code + 1 : end] - values.offsets[code + 1]
    starts = offsets.astype(">i4").tobytes()
    return struct.pack(">ii", len(starts), len(keys)), starts + keys


def read_dictionary(cursor: ByteCursor, data_type: AtomicType, size: int) -> ValueDictionary:
    """Open the dictionary of ``size`` values at the cursor; each chunk is read when it is needed.

    Raise CorruptTableError if the dictionary is damaged.
    """
    length = cursor.count("bytes of head")
    head = cursor.part(cursor.position, length)
    cursor.take(length)
    head.version(FORMAT_VERSION)
    chunk_count = head.count("chunks")
    starts_length = head.count("bytes of offsets")
    if starts_length != _INT_BYTES * chunk_count:
        raise head.error(f"{starts_length} bytes of offsets do not fit {chunk_count} chunks")
    starts = cursor.part(cursor.position, starts_length)
    cursor.take(starts_length)
    headers_length = head.count("bytes of chunk headers")
    headers = cursor.part(cursor.position, headers_length)
    cursor.take(headers_length)
    return ValueDictionary(data_type, size, chunk_count, starts, headers, cursor)


@dataclass(frozen=True, slots=True, eq=False)
class ValueDictionary:
    """Finds the code of a value, which is its index in the sorted values."""

    data_type: AtomicType
    size: int
    _chunk_count: int
    _starts: ByteCursor
    _headers: ByteCursor
    _keys: ByteCursor

    def find(self, key: Key) -> tuple[int, bool]:
        """Return the code of the first value not less than ``key``, and True if it equals ``key``.

        Raise CorruptTableError if the dictionary is damaged.
        """
        chunks = range(self._chunk_count)
        after = bisect_right(chunks, key, key=lambda chunk: self._open(chunk)[0])
        if after == 0:
            return 0, False
        first, header = self._open(after - 1)
        code, key_offset = header.count("codes"), header.count("bytes before its values")
        count = header.count("values in a chunk")
        if code + count >= self.size:
            raise header.error(
                f"a chunk names value {code + count}, counted from 0, but there are only "
                f"{self.size} values"
            )
        if first == key:
            return code, True
        values = _ChunkValues.read(self._keys, key_offset, count, header, self.data_type)
        place = bisect_left(range(count), key, key=values.key_at)
        return code + 1 + place, place < count and values.key_at(place) == key

    def _open(self, chunk: int) -> tuple[Key, ByteCursor]:
        """Return the first value of a chunk, and a cursor at the header's fields after it."""
        start = self._starts.at(_INT_BYTES * chunk).count("bytes before a chunk header")
        header = self._headers.at(start)
        header.version(FORMAT_VERSION)
        return read_key(header, self.data_type), header


@dataclass(frozen=True, slots=True, eq=False)
class _ChunkValues:
    """The values of a chunk after its first value."""

    data_type: AtomicType
    width: int | None
    offsets: ByteCursor
    keys: ByteCursor

    @classmethod
    def read(
        cls, area: ByteCursor, start: int, count: int, header: ByteCursor, data_type: AtomicType
    ) -> _ChunkValues:
        width = width_of(data_type)
        start += area.position
        if width is not None:
            length = header.count("bytes of values")
            return cls(data_type, width, area, area.part(start, length))
        offsets_length, length = header.count("bytes of offsets"), header.count("bytes of values")
        offsets = area.part(start, offsets_length)
        return cls(data_type, None, offsets, area.part(start + offsets_length, length))

    def key_at(self, place: int) -> Key:
        if self.width is not None:
            return read_key(self.keys.at(self.width * place), self.data_type)
        offset = self.offsets.at(_INT_BYTES * place).count("bytes before a value")
        return read_key(self.keys.at(offset), self.data_type)
