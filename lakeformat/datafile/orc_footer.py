"""What an ORC file's footer says about its timestamps, which Arrow reads as 64-bit nanoseconds.

Those reach from 1677 to 2262, and Arrow does not notice what lies beyond: 9999-12-31, a usual
mark for "still valid", would come back as a day in 1816. Arrow shows no statistics of ORC files,
so the few members needed are read here; the format is protobuf, in compressed chunks.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa

__all__ = ["find_far_timestamps"]

LARGEST_MILLIS = (2**63 - 1) // 1_000_000
MAX_POSTSCRIPT = 256
MAX_CHUNK = 8 << 20
MAX_VARINT_BITS = 63
_CHUNK_HEADER = 3
_UNCOMPRESSED, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5
_TIMESTAMP_KINDS = (9, 18)
_DECIMAL_KIND = 14
MAX_PRECISION = 38

# Numbers of members: of the postscript, the footer, a type, statistics of a column.
_FOOTER_LENGTH, _COMPRESSION = 1, 2
_TYPES, _STATISTICS = 4, 7
_KIND, _SUBTYPES, _FIELD_NAMES, _PRECISION, _SCALE = 1, 2, 3, 5, 6
_TIMESTAMP_STATISTICS = 9
_MILLIS = (1, 2, 3, 4)
"""Bounds of timestamps: local and UTC, in milliseconds; what follows is finer than that."""

_VARINT, _DELIMITED = 0, 2
_FIXED_SIZES = {1: 8, 5: 4}

Message = dict[int, list[int | bytes]]


def find_far_timestamps(stream: IO[bytes], columns: Sequence[str]) -> str | None:
    """The first of these columns with a timestamp out of reach; None if none is known to be.

    A footer that cannot be read is not judged here: the reader of the file will do that. Only
    for a decimal it would end the process over it is a ValueError.
    """
    try:
        footer = _read_footer(stream)
        types = [_message(part) for part in footer.get(_TYPES, [])]
        far = _first_far(types, footer.get(_STATISTICS, []), columns)
    except (ValueError, KeyError, IndexError, zlib.error, pa.ArrowException, OSError):
        return None
    if any(_is_impossible(column_type) for column_type in types):
        raise ValueError("a decimal of a precision there is not")
    return far


def _first_far(
    types: list[Message], statistics: list[int | bytes], columns: Sequence[str]
) -> str | None:
    names = [_bytes(name).decode() for name in types[0].get(_FIELD_NAMES, [])]
    children = dict(zip(names, _numbers(types[0].get(_SUBTYPES, [])), strict=False))
    for column in columns:
        for number in _subtree(types, children[column]) if column in children else ():
            if _is_timestamp(types[number]) and _is_far(statistics[number]):
                return column
    return None


def _is_impossible(column_type: Message) -> bool:
    if column_type.get(_KIND, [0])[0] != _DECIMAL_KIND:
        return False
    precision, scale = (column_type.get(member, [0])[0] for member in (_PRECISION, _SCALE))
    return not 1 <= _number(precision) <= MAX_PRECISION or _number(scale) > MAX_PRECISION


def _read_footer(stream: IO[bytes]) -> Message:
    size = stream.seek(0, io.SEEK_END)
    tail_size = min(size, MAX_POSTSCRIPT)
    stream.seek(size - tail_size)
    tail = stream.read(tail_size)
    length = tail[-1]
    postscript = _message(tail[-1 - length : -1])
    footer_size = _number(postscript[_FOOTER_LENGTH][0])
    start = size - 1 - length - footer_size
    if start < 0:
        raise ValueError("the footer is larger than the file")
    stream.seek(start)
    codec = _number(postscript.get(_COMPRESSION, [_UNCOMPRESSED])[0])
    return _message(_unpack(stream.read(footer_size), codec))


def _unpack(content: bytes, codec: int) -> bytes:
    if codec == _UNCOMPRESSED:
        return content
    parts, place = [], 0
    while place < len(content):
        header = int.from_bytes(content[place : place + _CHUNK_HEADER], "little")
        place += _CHUNK_HEADER
        chunk = content[place : place + (header >> 1)]
        parts.append(chunk if header & 1 else _decompress(chunk, codec))
        place += len(chunk)
    return b"".join(parts)


def _decompress(chunk: bytes, codec: int) -> bytes:
    if codec == _ZLIB:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, MAX_CHUNK)
    if codec == _SNAPPY:
        size, _ = _varint(chunk, 0)
        return bytes(pa.decompress(chunk, min(size, MAX_CHUNK), "snappy", asbytes=True))
    if codec == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(MAX_CHUNK))
    raise ValueError(f"compression {codec}")


def _subtree(types: list[Message], root: int) -> Iterator[int]:
    """A column's type and everything below it, each once."""
    waiting, seen = [root], {root}
    while waiting:
        number = waiting.pop()
        yield number
        below = set(_numbers(types[number].get(_SUBTYPES, []))) - seen
        seen |= below
        waiting.extend(below)


def _is_timestamp(column_type: Message) -> bool:
    return column_type.get(_KIND, [0])[0] in _TIMESTAMP_KINDS


def _is_far(statistics: int | bytes) -> bool:
    for found in _message(statistics).get(_TIMESTAMP_STATISTICS, []):
        members = _message(found)
        ends = [_number(end) for member in _MILLIS for end in members.get(member, [])]
        # Signs are zigzag encoded.
        if any(abs((end >> 1) ^ -(end & 1)) >= LARGEST_MILLIS for end in ends):
            return True
    return False


def _message(content: int | bytes) -> Message:
    """The members of a protobuf message by number."""
    data, place = _bytes(content), 0
    members: Message = {}
    while place < len(data):
        key, place = _varint(data, place)
        member, wire = key >> 3, key & 7
        value: int | bytes
        if wire == _VARINT:
            value, place = _varint(data, place)
        else:
            if wire == _DELIMITED:
                size, place = _varint(data, place)
            else:
                size = _FIXED_SIZES[wire]
            value, place = data[place : place + size], place + size
        members.setdefault(member, []).append(value)
    return members


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        shift += 7
        if byte < 0x80:
            return value, place
        if shift > MAX_VARINT_BITS:
            raise ValueError("a number of more than 64 bits")


def _numbers(values: list[int | bytes]) -> list[int]:
    """Repeated numbers, one by one or packed."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        place = 0
        while place < len(value):
            number, place = _varint(value, place)
            found.append(number)
    return found


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("bytes where a number belongs")
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where bytes belong")
    return value
