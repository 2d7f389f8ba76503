# SPDX-License-Identifier: Apache-2.0
"""Writes the container of an Avro file around encoded records."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

import fastavro
import numpy as np
import pyarrow as pa
from backports import zstd
from numpy.typing import NDArray

from lakeformat.files.avro.avro_container import SYNC_SIZE

__all__ = ["BLOCK_BYTES", "avro_number", "pack_records"]

BLOCK_BYTES = 16_000
"""The unpacked size in bytes at which a block is complete. The record that reaches it is still part
of the block, as in fastavro.
"""

Pack = Callable[[bytes], bytes]
_NO_METADATA: Mapping[str, str] = MappingProxyType({})


def pack_records(
    schema_json: str,
    records: NDArray[np.uint8],
    ends: NDArray[np.int64],
    *,
    codec: str,
    zstd_level: int,
    sync: bytes | None = None,
    metadata: Mapping[str, str] = _NO_METADATA,
) -> bytes:
    """Return an Avro file of encoded records; ``ends`` has the end offset of each record in
    ``records``.

    ``codec`` is null, deflate, snappy or zstandard; only zstandard uses ``zstd_level``. ``sync`` is
    the sync marker of 16 bytes; None makes a random one. ``metadata`` is added to the header.
    """
    sync = os.urandom(SYNC_SIZE) if sync is None else sync
    pack = _PACKERS[codec](zstd_level)
    whole = records.data
    parts = [_header(schema_json, codec, tuple(metadata.items())), sync]
    for start, end, count in _block_bounds(ends):
        packed = pack(bytes(whole[start:end]))
        parts += (avro_number(count), avro_number(len(packed)), packed, sync)
    return b"".join(parts)


def avro_number(value: int) -> bytes:
    """Return the zig-zag encoding of a number of up to 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _block_bounds(ends: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield the start offset, the end offset and the record count of each block.

    ``ends`` has the end offset of each record.
    """
    first, start = 0, 0
    while first < len(ends):
        last = min(int(np.searchsorted(ends, start + BLOCK_BYTES)), len(ends) - 1)
        end = int(ends[last])
        yield start, end, last - first + 1
        first, start = last + 1, end


@lru_cache(maxsize=8)
def _header(schema_json: str, codec: str, metadata: tuple[tuple[str, str], ...]) -> bytes:
    """Return the header of a file up to its sync marker."""
    buffer = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(schema_json))
    fastavro.writer(buffer, schema, [], codec=codec, metadata=dict(metadata))
    return buffer.getvalue()[:-SYNC_SIZE]


def _no_packer(zstd_level: int) -> Pack:
    return lambda block: block


def _deflate_packer(zstd_level: int) -> Pack:
    # Without the two bytes before and the four bytes after it, which only zlib streams have.
    return lambda block: zlib.compress(block)[2:-4]


def _snappy_packer(zstd_level: int) -> Pack:
    codec = pa.Codec("snappy")

    def pack(block: bytes) -> bytes:
        packed: bytes = codec.compress(block, asbytes=True)
        return packed + zlib.crc32(block).to_bytes(4, "big")

    return pack


def _zstd_packer(zstd_level: int) -> Pack:
    compressor = zstd.ZstdCompressor(level=zstd_level)
    return lambda block: compressor.compress(block, compressor.FLUSH_FRAME)


_PACKERS: dict[str, Callable[[int], Pack]] = {
    "null": _no_packer,
    "deflate": _deflate_packer,
    "snappy": _snappy_packer,
    "zstandard": _zstd_packer,
}
