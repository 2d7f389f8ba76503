# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file index: a head with the position of each column's indexes, then the indexes.

The bytes are in a file ``<data file>….index`` beside the data file, or in the manifest entry if
they are few. All integers are big endian. Columns and types may be in any order.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import IO

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.files.byte_cursor import ByteCursor
from lakeformat.paimon.index.damage import missing_file
from lakeformat.paimon.index.file_index.modified_utf8 import encode_utf, read_utf
from lakeformat.storage import Storage
from lakeformat.tables.json_file import newer_version

__all__ = ["REBUILD", "decode_file_index", "encode_file_index", "read_file_index"]

FORMAT_VERSION = 1
REBUILD = (
    "set 'file-index.read.enabled' to 'false' to read without the file index, and build it again "
    "with `lake rewrite-file-index TABLE --force`"
)
"""The advice for a damaged file index; all rows can still be read without the index."""

_MAGIC = 0x00054E4ED01A35AE
_PREFIX_BYTES = 16
_EMPTY = -1
"""The start that is stored for an index without a body.

Such an index proves that the column has only nulls.
"""
_LARGEST_INT32 = 2**31 - 1

Bodies = dict[str, dict[str, bytes | None]]
"""The bytes of each index, by column and index type.

None stands for an index without bytes, which proves that the column has only nulls in the file.
The values of one key of a MAP have the column name ``column[key]``.
"""
_Places = list[tuple[str, str, int, int]]


def encode_file_index(indexes: Mapping[str, Mapping[str, bytes | None]]) -> bytes:
    """Return the bytes of a file index that contains ``indexes``.

    ``indexes`` has the bytes of each index, by column name and index type. None in place of the
    bytes proves that the column has only nulls. Raise InvalidRequestError for more than 2 GiB, or
    for a column name of more than 65,535 bytes.
    """
    names = [
        [encode_utf(column), *(encode_utf(index_type) for index_type in by_type)]
        for column, by_type in indexes.items()
    ]
    # Each column has its number of indexes, each index its start and length.
    head_length = _PREFIX_BYTES + 4 + 4
    head_length += sum(len(name) for column in names for name in column)
    head_length += sum(4 + 8 * (len(column) - 1) for column in names)
    head = [struct.pack(">qiii", _MAGIC, FORMAT_VERSION, head_length, len(indexes))]
    bodies: list[bytes] = []
    start = head_length
    for (column_name, *type_names), by_type in zip(names, indexes.values(), strict=True):
        head += [column_name, struct.pack(">i", len(by_type))]
        for type_name, body in zip(type_names, by_type.values(), strict=True):
            place = (_EMPTY, 0) if body is None else (start, len(body))
            if sum(place) > _LARGEST_INT32:
                raise InvalidRequestError(
                    "the indexes of one data file take more than 2 GiB, which their format cannot "
                    "address: index fewer columns, or lower 'target-file-size'"
                )
            head += [type_name, struct.pack(">ii", *place)]
            bodies.append(body or b"")
            start += len(bodies[-1])
    redundant_length = struct.pack(">i", 0)
    return b"".join([*head, redundant_length, *bodies])


def decode_file_index(content: bytes, source: str) -> Bodies:
    """Return the bytes of every index in ``content``, a file index such as that of a manifest
    entry.

    Raise CorruptTableError for a damaged file index, and UnsupportedError for a newer version.
    """
    cursor = ByteCursor(content, source, remedy=REBUILD)
    head_length = _read_prefix(cursor, len(content), source)
    places = _read_places(cursor.part(0, head_length), cursor.end)
    bodies: Bodies = {}
    for column, index_type, start, length in places:
        body = None if start == _EMPTY else content[start : start + length]
        bodies.setdefault(column, {})[index_type] = body
    return bodies


def read_file_index(storage: Storage, path: str, columns: Collection[str] | None = None) -> Bodies:
    """Read an index file; return the bytes of the indexes of ``columns``, by default of all
    columns.

    Raise CorruptTableError for a missing or damaged file, and UnsupportedError for a newer version.
    """
    uri = storage.uri(path)
    try:
        stream = storage.open_input(path)
    except NotFoundError:
        raise missing_file(uri, "a manifest") from None
    with stream:
        size = stream.seek(0, 2)
        prefix = _read_at(stream, 0, min(size, _PREFIX_BYTES))
        head_length = _read_prefix(ByteCursor(prefix, uri, remedy=REBUILD), size, uri)
        head = ByteCursor(_read_at(stream, 0, head_length), uri, remedy=REBUILD)
        bodies: Bodies = {}
        for column, index_type, start, length in _read_places(head, size):
            if columns is None or column in columns:
                body = None if start == _EMPTY else _read_at(stream, start, length)
                bodies.setdefault(column, {})[index_type] = body
        return bodies


def _read_at(stream: IO[bytes], start: int, length: int) -> bytes:
    stream.seek(start)
    return stream.read(length)


def _read_prefix(cursor: ByteCursor, size: int, source: str) -> int:
    """Check magic and version; return the length of the head in bytes.

    Raise CorruptTableError for a wrong value, and UnsupportedError for a newer version.
    """
    magic = cursor.int64()
    if magic != _MAGIC:
        raise cursor.error(f"a file index cannot start with {magic:#x}")
    version = cursor.int32()
    if version > FORMAT_VERSION:
        newer = newer_version("file index", version, FORMAT_VERSION)
        raise UnsupportedError(f"{source}: {newer}, or set 'file-index.read.enabled' to 'false'")
    if version < FORMAT_VERSION:
        raise cursor.error(
            f"its format version is {version}, but versions begin at {FORMAT_VERSION}"
        )
    head_length = cursor.int32()
    if not _PREFIX_BYTES <= head_length <= size:
        raise cursor.error(
            f"the length of its head is {head_length}, but must be {_PREFIX_BYTES} to {size} bytes"
        )
    return head_length


def _read_places(cursor: ByteCursor, size: int) -> _Places:
    """Return column, type, start and length of each index.

    Raise CorruptTableError if an index is outside of the file.
    """
    cursor = cursor.at(_PREFIX_BYTES)
    places: _Places = []
    for _ in range(cursor.count("columns")):
        column = read_utf(cursor)
        for _ in range(cursor.count("indexes")):
            index_type = read_utf(cursor)
            start, length = cursor.int32(), cursor.int32()
            is_inside = cursor.end <= start and 0 <= length <= size - start
            if start != _EMPTY and not is_inside:
                raise cursor.error(
                    f"its {index_type} index of column {column} claims bytes {start} to "
                    f"{start + length}, but indexes are at bytes {cursor.end} to {size}"
                )
            places.append((column, index_type, start, length))
    # Indexes that overlap would let a small file request any amount of memory.
    if sum(length for *_, start, length in places if start != _EMPTY) > size - cursor.end:
        raise cursor.error("its indexes together are longer than the file")
    return places
