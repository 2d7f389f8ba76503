# SPDX-License-Identifier: Apache-2.0
"""Reads the end of an ORC file: the offsets of its stripes, its types and its compression."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.orc.message import Message, numbers, parse_message, parts, single, varint

__all__ = [
    "CHUNK_HEADER",
    "UNCOMPRESSED",
    "ColumnType",
    "OrcTail",
    "Stripe",
    "file_zones",
    "read_tail",
    "unpack",
    "writer_zones",
]

MAX_POSTSCRIPT = 256
MAX_CHUNK = 8 << 20
"""The largest size of a chunk after decompression, in bytes. The header of a chunk has 23 bits for
its stored size, so a chunk that is stored without compression cannot be larger either.
"""
CHUNK_HEADER = 3
_LZ4_SHORTEST = 4
UNCOMPRESSED, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
_DECIMAL = 14
_MAX_PRECISION = 38

# Member numbers of the postscript, the footer, a stripe, a type.
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE = 1, 2, 3
_STRIPES, _TYPES, _STATISTICS = 3, 4, 7
_WRITER_ZONE = 3
_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH = 1, 2, 3, 4
_KIND, _SUBTYPES, _FIELD_NAMES, _PRECISION, _SCALE = 1, 2, 3, 5, 6


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type in the tree of types; its number is its index in ``OrcTail.types``."""

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stripe:
    """The offsets of a stripe: those of its streams and of the footer that describes them."""

    start: int
    footer_start: int
    footer_size: int


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The footer of an ORC file, with the compression in its postscript."""

    codec: int
    block_size: int
    types: tuple[ColumnType, ...]
    stripes: tuple[Stripe, ...]
    statistics: tuple[bytes, ...]

    def subtree(self, column: str) -> Iterator[int]:
        """Yield the numbers of the type of a top-level column and of all types inside of it."""
        root = self.types[0]
        for name, number in zip(root.names, root.children, strict=False):
            if name == column:
                yield from self.below(number)

    def below(self, number: int) -> Iterator[int]:
        """Yield ``number`` and the numbers of all types inside of this type."""
        waiting = [number]
        while waiting:
            number = waiting.pop()
            yield number
            waiting.extend(self.types[number].children)


def read_tail(stream: IO[bytes]) -> OrcTail:
    """Read postscript and footer; raise ``ValueError`` or ``IndexError`` if they are invalid."""
    size = stream.seek(0, io.SEEK_END)
    tail_size = min(size, MAX_POSTSCRIPT)
    stream.seek(size - tail_size)
    tail = stream.read(tail_size)
    if not tail:
        raise ValueError("it is empty")
    postscript = parse_message(tail[-1 - tail[-1] : -1])
    codec, block = single(postscript, _COMPRESSION), single(postscript, _BLOCK_SIZE)
    if block > MAX_CHUNK:
        raise ValueError(
            f"its postscript announces blocks of {block} bytes, but at most {MAX_CHUNK} are allowed"
        )
    footer_size = single(postscript, _FOOTER_LENGTH)
    start = size - 1 - tail[-1] - footer_size
    if start < 0:
        raise ValueError(
            f"its postscript announces a footer of {footer_size} bytes, but the file has {size}"
        )
    stream.seek(start)
    footer = parse_message(unpack(stream.read(footer_size), codec))
    types = tuple(_column_type(parse_message(part)) for part in parts(footer, _TYPES))
    _check_order(types)
    stripes = tuple(_stripe(parse_message(part), start) for part in parts(footer, _STRIPES))
    return OrcTail(codec, block, types, stripes, tuple(parts(footer, _STATISTICS)))


def file_zones(stream: IO[bytes]) -> set[str]:
    """Return the time zones in the stripes of a file: those of the JVMs that wrote the file.

    Raise ``ValueError`` for an invalid file, and ``UnsupportedError`` for LZO.
    """
    zones: set[str] = set()
    try:
        tail = read_tail(stream)
        for stripe in tail.stripes:
            stream.seek(stripe.footer_start)
            footer = unpack(stream.read(stripe.footer_size), tail.codec)
            zones |= writer_zones(parse_message(footer))
    except IndexError as reason:
        raise ValueError("its footer ends early") from reason
    return zones


def writer_zones(stripe_footer: Message) -> set[str]:
    """Return the time zone in the footer of one stripe as a set; empty if it names none."""
    return {part.decode() for part in parts(stripe_footer, _WRITER_ZONE) if part}


def unpack(content: bytes, codec: int) -> bytes:
    """Return the decompressed bytes of a stream or footer; a compressed file stores them in chunks.

    Raise ``ValueError`` for invalid chunks, and ``UnsupportedError`` for LZO.
    """
    if codec == UNCOMPRESSED:
        return content
    unpacked, place = [], 0
    while place < len(content):
        header = int.from_bytes(content[place : place + CHUNK_HEADER], "little")
        place += CHUNK_HEADER
        chunk = content[place : place + (header >> 1)]
        if len(chunk) < header >> 1:
            raise ValueError("a compressed chunk ends early")
        unpacked.append(chunk if header & 1 else _decompress(chunk, codec))
        place += len(chunk)
    return b"".join(unpacked)


def _decompress(chunk: bytes, codec: int) -> bytes:
    if codec == _ZLIB:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = inflate.decompress(chunk, MAX_CHUNK)
        except zlib.error as reason:
            raise ValueError(f"a compressed chunk is invalid: {reason}") from reason
        if not inflate.eof or inflate.unused_data:
            raise ValueError("a compressed chunk does not end where it should")
        return content
    if codec == _SNAPPY:
        size, _ = varint(chunk, 0)
        return _decompress_sized(chunk, size, "snappy")
    if codec == _LZ4:
        return _decompress_sized(chunk, _lz4_size(chunk), "lz4_raw")
    if codec == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(MAX_CHUNK))
    if codec == _LZO:
        raise UnsupportedError(
            "it is compressed with LZO, which this version cannot read; rewrite it with "
            "another engine, such as Spark, and another compression, such as zstd"
        )
    raise ValueError(f"compression {codec} does not exist")


def _decompress_sized(chunk: bytes, size: int, name: str) -> bytes:
    if size > MAX_CHUNK:
        raise ValueError(
            f"a compressed chunk claims to decompress to {size} bytes, but at most {MAX_CHUNK} are "
            "allowed"
        )
    return bytes(pa.decompress(chunk, size, name, asbytes=True))


def _lz4_size(chunk: bytes) -> int:
    """Return the decompressed size of an LZ4 block: the sum of the sizes of its parts, because the
    block does not store the total.
    """
    size = place = 0
    while True:
        token = chunk[place]
        literals, place = _lz4_length(chunk, place + 1, token >> 4)
        size, place = size + literals, place + literals
        if place >= len(chunk):
            return size
        # Two bytes are the distance to the bytes that are repeated.
        repeated, place = _lz4_length(chunk, place + 2, token & 15)
        size += repeated + _LZ4_SHORTEST


def _lz4_length(chunk: bytes, place: int, length: int) -> tuple[int, int]:
    if length < 15:
        return length, place
    while True:
        length += chunk[place]
        place += 1
        if chunk[place - 1] < 255:
            return length, place


def _column_type(message: Message) -> ColumnType:
    kind = single(message, _KIND)
    if kind == _DECIMAL:
        precision, scale = single(message, _PRECISION), single(message, _SCALE)
        # An invalid precision or scale would make Arrow end the process.
        if not 1 <= precision <= _MAX_PRECISION or scale > _MAX_PRECISION:
            raise ValueError("a decimal has an invalid precision or scale")
    names = tuple(name.decode() for name in parts(message, _FIELD_NAMES))
    return ColumnType(kind, tuple(numbers(message, _SUBTYPES)), names)


def _check_order(types: Sequence[ColumnType]) -> None:
    """Raise ``ValueError`` if types are not numbered depth first from the root, as readers
    expect.
    """
    expected, waiting = 0, [0]
    while waiting:
        number = waiting.pop()
        if number != expected:
            raise ValueError(f"its footer has type {number} in the place of type {expected}")
        if number >= len(types):
            raise ValueError(f"its footer lists {len(types)} types, but type {number} is needed")
        expected += 1
        waiting.extend(reversed(types[number].children))
    if expected != len(types):
        raise ValueError(
            f"its footer lists {len(types)} types, but its columns use only {expected}"
        )


def _stripe(message: Message, end: int) -> Stripe:
    start, index, data, footer = (
        single(message, member)
        for member in (_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH)
    )
    if start + index + data + footer > end:
        raise ValueError(f"a stripe at offset {start} reaches into the footer of the file")
    return Stripe(start, start + index + data, footer)
