# SPDX-License-Identifier: Apache-2.0
"""Reads the container of an Avro file: its header, and its unpacked blocks in one buffer."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
from backports import zstd
from numpy.typing import NDArray

from lakeformat.types.count_text import counted

__all__ = [
    "MAGIC",
    "READABLE_AFTER",
    "SYNC_SIZE",
    "AvroBlocks",
    "BlockLimitError",
    "NotPlainError",
    "join_blocks",
    "most_records",
    "most_unpacked",
    "read_blocks",
    "read_records",
    "short_reason",
    "unpack_block",
]

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
READABLE_AFTER = 32
"""The number of zero bytes after the content; a reader may read these bytes, too."""

# Metadata is repetitive, but never compresses better than this. A higher ratio is damage or an
# attack.
_LARGEST_RATIO = 1000
_ALWAYS_ALLOWED_BYTES = 64 << 20
_LARGE_FILE_RATIO = 32
_MOST_BYTES_OF_FEW = 512 << 20
"""The largest accepted unpacked size, in bytes, of a file of at most 16 MiB."""
_LEAST_RECORD_BYTES = 2
"""The smallest plausible packed size of a metadata record, in bytes."""
_ALWAYS_ALLOWED_RECORDS = 10_000
_SNAPPY_CHECKSUM_SIZE = 4
_LONGEST_REASON = 120

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_LONGEST_HEADER = 18
_ZSTD_ZEROS = zstd.compress(bytes(READABLE_AFTER))


class NotPlainError(Exception):
    """The fast decoder cannot read a file, because the file is damaged, or has a structure that
    table writers do not use.
    """


class BlockLimitError(Exception):
    """A file claims far more bytes or records than a file of its size can have."""


@dataclass(frozen=True, slots=True)
class AvroBlocks:
    """The unpacked blocks of one file, or of several files with the same schema."""

    schema: bytes
    """The writer's schema, as JSON."""
    content: NDArray[np.uint8]
    """The unpacked bytes of all blocks, followed by ``READABLE_AFTER`` zeros."""
    counts: NDArray[np.int64]
    """The number of records of each block."""
    ends: NDArray[np.int64]
    """For each block, the position of its end in ``content``."""
    offsets: NDArray[np.int64]
    """For each block, the position of its start in the file."""


def read_blocks(content: bytes) -> AvroBlocks:
    """Unpack all blocks of the file with the bytes ``content``, without parsing records.

    Raise ``NotPlainError`` for a damaged file, and ``BlockLimitError`` if it claims far more bytes
    or records than a file of its size can have.
    """
    try:
        metadata, start = _read_header(content)
    except (IndexError, UnicodeDecodeError) as reason:
        raise NotPlainError(f"its header is damaged: {reason}") from None
    counts, packed, offsets = _split(content, start)
    codec = metadata.get("avro.codec", b"null").decode("ascii", "replace")
    if codec not in _UNPACK:
        raise NotPlainError(f"codec {codec!r} does not exist in Avro")
    limit = most_unpacked(len(content))
    if sum(counts) > most_records(len(content)):
        raise BlockLimitError
    try:
        blocks = _UNPACK[codec](packed, limit)
    except _BROKEN as reason:
        place = _first_broken(codec, packed, offsets, limit)
        raise NotPlainError(f"{place} cannot be decompressed with {codec}: {reason}") from None
    return AvroBlocks(
        metadata.get("avro.schema", b""),
        blocks.content,
        np.array(counts, np.int64),
        blocks.ends,
        np.array(offsets, np.int64),
    )


def most_unpacked(size: int) -> int:
    """Return the largest plausible unpacked size of ``size`` packed bytes."""
    most = max(_MOST_BYTES_OF_FEW, _LARGE_FILE_RATIO * size)
    return min(_ALWAYS_ALLOWED_BYTES + _LARGEST_RATIO * size, most)


def most_records(size: int) -> int:
    """Return the largest plausible number of metadata records in a file of ``size`` bytes."""
    return _ALWAYS_ALLOWED_RECORDS + size // _LEAST_RECORD_BYTES


def unpack_block(codec: str, packed: bytes) -> bytes:
    """Return the unpacked bytes of one block.

    Raise ``BlockLimitError`` if the block claims, or unpacks to, more bytes than
    ``most_unpacked`` allows for its size, and ``NotPlainError`` if it is damaged or if Avro has no
    such codec.
    """
    if codec not in _UNPACK:
        raise NotPlainError(f"codec {codec!r} does not exist in Avro")
    try:
        content = _UNPACK[codec]([packed], most_unpacked(len(packed))).content
    except _BROKEN as reason:
        raise NotPlainError(f"it cannot be decompressed with {codec}: {reason}") from None
    return content[: len(content) - READABLE_AFTER].tobytes()


def _first_broken(codec: str, packed: list[bytes], offsets: list[int], limit: int) -> str:
    for number, (block, offset) in enumerate(zip(packed, offsets, strict=True)):
        try:
            _UNPACK[codec]([block], limit)
        except (*_BROKEN, NotPlainError, BlockLimitError):
            return f"block {number} at byte {offset}"
    return "a block"


def join_blocks(files: Sequence[AvroBlocks]) -> AvroBlocks:
    """Return the blocks of several files with the same schema, as if all were in one file.

    ``offsets`` still has the offset of each block in the file that it came from.
    """
    if len(files) == 1:
        return files[0]
    sizes = [len(file.content) - READABLE_AFTER for file in files]
    parts = [file.content[:size] for file, size in zip(files, sizes, strict=True)]
    shifts = np.cumsum([0, *sizes])
    return AvroBlocks(
        files[0].schema,
        np.concatenate((*parts, np.zeros(READABLE_AFTER, np.uint8))),
        np.concatenate([file.counts for file in files]),
        np.concatenate([file.ends + shift for file, shift in zip(files, shifts, strict=False)]),
        np.concatenate([file.offsets for file in files]),
    )


def read_records(blocks: AvroBlocks, decode: Callable[[IO[bytes]], Any]) -> Iterator[Any]:
    """Yield the records of a file; ``decode`` reads one record from a stream.

    Raise ``ValueError``, which names the block, for a damaged record, and for a block with another
    number of records than it claims.
    """
    start = 0
    places = zip(blocks.counts, blocks.ends, blocks.offsets, strict=True)
    for number, (count, end, offset) in enumerate(places):
        where = f"block {number} at byte {offset}"
        body = blocks.content[start:end].tobytes()
        if count > len(body):
            raise ValueError(f"{where} claims {count} records, but has only {len(body)} bytes")
        stream = io.BytesIO(body)
        for _ in range(count):
            try:
                record = decode(stream)
            except Exception as reason:  # decoders raise errors of many classes for damaged bytes
                at = f"record near byte {stream.tell()} of its content"
                raise ValueError(f"{where}, {at}: {short_reason(reason)}") from reason
            yield record
        if extra_bytes := len(body) - stream.tell():
            raise ValueError(f"{where} is {counted(extra_bytes, 'byte')} longer than its records")
        start = end


def short_reason(reason: Exception) -> str:
    """Return the class and the text of an error, cut after 120 characters.

    The texts of some libraries quote many bytes of the file.
    """
    text = f"{type(reason).__name__}: {reason}"
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


@dataclass(frozen=True, slots=True)
class _UnpackedBlocks:
    content: NDArray[np.uint8]
    ends: NDArray[np.int64]


def _read_header(content: bytes) -> tuple[dict[str, bytes], int]:
    if content[: len(MAGIC)] != MAGIC:
        start = content[: len(MAGIC)]
        raise NotPlainError(
            f"it is not an Avro file: it starts with {start!r} instead of {MAGIC!r}"
        )
    metadata: dict[str, bytes] = {}
    count, at = _read_number(content, len(MAGIC))
    while count:
        if count < 0:  # the size of the entries in bytes follows
            count, (_, at) = -count, _read_number(content, at)
        for _ in range(count):
            key, at = _read_bytes(content, at)
            metadata[key.decode()], at = _read_bytes(content, at)
        count, at = _read_number(content, at)
    return metadata, at


def _split(content: bytes, at: int) -> tuple[list[int], list[bytes], list[int]]:
    """Return the record count, the packed bytes and the offset of each block.

    ``at`` is the offset of the header's sync marker. Raise ``NotPlainError`` for a block that does
    not end with this marker.
    """
    sync = content[at : at + SYNC_SIZE]
    at += SYNC_SIZE
    counts: list[int] = []
    packed: list[bytes] = []
    offsets: list[int] = []
    while at < len(content):
        start, number = at, len(counts)
        try:
            count, at = _read_number(content, at)
            size, at = _read_number(content, at)
        except IndexError:
            raise NotPlainError(f"block {number}, from byte {start} on, is incomplete") from None
        end = at + size
        if count < 0 or size < 0 or content[end : end + SYNC_SIZE] != sync:
            what = "ends early" if end + SYNC_SIZE > len(content) else "is incomplete"
            raise NotPlainError(f"block {number} at byte {start} {what}: no sync marker follows")
        counts.append(count)
        packed.append(content[at:end])
        offsets.append(start)
        at = end + SYNC_SIZE
    if at != len(content):
        raise NotPlainError("it ends inside its header")
    return counts, packed, offsets


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """Return the zig-zag number at offset ``at``, and the offset after it."""
    byte = content[at]
    at += 1
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > 63:
            raise NotPlainError(f"the number at offset {at} is too long")
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), at


def _read_bytes(content: bytes, at: int) -> tuple[bytes, int]:
    size, at = _read_number(content, at)
    if not 0 <= size <= len(content) - at:
        raise NotPlainError(f"it announces {size} bytes at {at}, but ends at {len(content)}")
    return content[at : at + size], at + size


def _join(blocks: Sequence[bytes]) -> _UnpackedBlocks:
    content = np.frombuffer(b"".join((*blocks, bytes(READABLE_AFTER))), np.uint8)
    return _UnpackedBlocks(content, np.cumsum([len(block) for block in blocks], dtype=np.int64))


def _unpack_null(packed: list[bytes], limit: int) -> _UnpackedBlocks:
    return _join(packed)


class _Stream(Protocol):
    """The interface that the decompressors of the standard library share."""

    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, most: int, /) -> bytes: ...


def _unpack_stream(
    start: Callable[[], _Stream],
) -> Callable[[list[bytes], int], _UnpackedBlocks]:
    def unpack(block: bytes, most: int) -> bytes:
        stream = start()
        content = stream.decompress(block, most)
        if not stream.eof and len(content) < most:
            raise NotPlainError("the compressed content of a block ends early")
        return content

    return lambda packed, limit: _unpack_each(packed, limit, unpack)


def _unpack_snappy(packed: list[bytes], limit: int) -> _UnpackedBlocks:
    codec = pa.Codec("snappy")

    def unpack(block: bytes, most: int) -> bytes:
        body, checksum = block[:-_SNAPPY_CHECKSUM_SIZE], block[-_SNAPPY_CHECKSUM_SIZE:]
        size = _plain_number(body)
        if size >= most:
            raise BlockLimitError
        content: bytes = codec.decompress(body, size, asbytes=True)
        if zlib.crc32(content) != int.from_bytes(checksum, "big"):
            raise NotPlainError("the checksum of a block is wrong")
        return content

    return _unpack_each(packed, limit, unpack)


def _unpack_zstd(packed: list[bytes], limit: int) -> _UnpackedBlocks:
    """Unpack all zstd frames in one call if each header has the unpacked size, else one by one."""
    sizes = [size for block in packed if (size := _frame_size(block)) is not None]
    if len(sizes) < len(packed):
        return _unpack_each(packed, limit, _unpack_frame)
    if sum(sizes) > limit:
        raise BlockLimitError
    ends = np.cumsum(np.array(sizes, np.int64))
    total = READABLE_AFTER + (int(ends[-1]) if len(ends) else 0)
    content = pa.Codec("zstd").decompress(b"".join((*packed, _ZSTD_ZEROS)), total)
    return _UnpackedBlocks(np.frombuffer(content, np.uint8), ends)


def _unpack_frame(block: bytes, most: int) -> bytes:
    stream = zstd.ZstdDecompressor()
    content = stream.decompress(block, most)
    if (not stream.eof and len(content) < most) or stream.unused_data:
        raise NotPlainError("a block is not one complete frame of zstd")
    return content


def _unpack_each(
    packed: list[bytes], limit: int, unpack: Callable[[bytes, int], bytes]
) -> _UnpackedBlocks:
    blocks, room = [], limit
    for block in packed:
        content = unpack(block, room)
        room -= len(content)
        if room <= 0:
            raise BlockLimitError
        blocks.append(content)
    return _join(blocks)


def _frame_size(block: bytes) -> int | None:
    """Return the unpacked size in the header of a zstd frame.

    Return None if the header has no size, if the frame needs a dictionary, or if ``block`` is not a
    zstd frame.
    """
    head = block[:_ZSTD_LONGEST_HEADER].ljust(_ZSTD_LONGEST_HEADER, b"\0")
    flag, single, dictionary = head[4] >> 6, head[4] >> 5 & 1, head[4] & 3
    if not head.startswith(_ZSTD_MAGIC) or dictionary or not (flag or single):
        return None
    # A single-segment frame has no byte of the window size.
    start = 6 - single
    size = int.from_bytes(head[start : start + (1 << flag)], "little")
    return size + 256 if flag == 1 else size


def _plain_number(content: bytes) -> int:
    number, shift = 0, 0
    for at in range(5):
        byte = content[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    raise NotPlainError("a snappy block does not start with its size")


_UNPACK: dict[str, Callable[[list[bytes], int], _UnpackedBlocks]] = {
    "null": _unpack_null,
    "deflate": _unpack_stream(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    "snappy": _unpack_snappy,
    "zstandard": _unpack_zstd,
    "bzip2": _unpack_stream(bz2.BZ2Decompressor),
    "xz": _unpack_stream(lambda: lzma.LZMADecompressor(memlimit=_ALWAYS_ALLOWED_BYTES)),
}
_BROKEN = (OSError, EOFError, IndexError, zlib.error, zstd.ZstdError, lzma.LZMAError)
