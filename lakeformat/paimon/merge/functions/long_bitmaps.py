# SPDX-License-Identifier: Apache-2.0
"""``rbm64``: the union of 64-bit Roaring bitmaps in the format of Java's library.

This is not the portable format. It is a radix tree over the high 48 bits of the numbers. Each leaf
has one value of these bits as its key, and the index of a container. The container has the low 16
bits of all numbers with this key. Nodes are stored depth first. The types int16 to int64 are
little-endian. The parts of a bitmap have this layout:

    bitmap        0 if empty, or: 1 int8 | count of keys int64 | nodes | containers
    node          type int8 | count of children int16 | prefix length int8 | prefix | body
    leaf          type int8 | zero int16 | zero int8 | key 6 bytes, highest first
                  | index of its container int64
    containers    count of arrays int32
                  | for each array: mark int8, count of its containers int32, the containers
                  | count of all containers int64
                  | index of the last array int32 | index of the last container in it int32
    container     0, or: 1 int8 | type int8 | count of values int32 | values
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from lakeformat.errors import CorruptTableError
from lakeformat.files.byte_cursor import ByteCursor

__all__ = ["decode_long_bitmap", "encode_long_bitmap", "union_of_long_bitmaps"]

Longs = npt.NDArray[np.uint64]

_NODE4, _NODE16, _NODE48, _NODE256, _LEAF = range(5)
_BODY_BYTES = {_NODE4: 4, _NODE16: 16, _NODE48: 256, _NODE256: 32}
_RUNS, _BITS, _LIST = range(3)
_KEY_BYTES = 6
_MOST_IN_LIST = 4096
_NOT_TRIMMED = -2
_HEADER = struct.Struct("<bhb")


def union_of_long_bitmaps(values: Sequence[bytes]) -> bytes:
    """Return the union of the bitmaps; raise ValueError if one is damaged."""
    try:
        return encode_long_bitmap(np.concatenate([decode_long_bitmap(v) for v in values]))
    except CorruptTableError as reason:
        raise ValueError(str(reason)) from None


def decode_long_bitmap(value: bytes) -> Longs:
    """Return the numbers of a bitmap as unsigned integers in ascending order.

    Raise CorruptTableError if it is damaged.
    """
    cursor = ByteCursor(value, "its bitmap", remedy="write the bitmap again")
    if not cursor.int8():
        return np.empty(0, np.uint64)
    leaves = [_read_leaf(cursor) for _ in range(cursor.little_uint64())]
    containers = _read_containers(cursor)
    parts = []
    for key, index in leaves:
        if index not in containers:
            raise cursor.error(f"a leaf names container {index}, which does not exist")
        parts.append(containers[index].astype(np.uint64) | np.uint64(key << 16))
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.uint64)


def _read_leaf(cursor: ByteCursor) -> tuple[int, int]:
    """Return the key and the container number of the next leaf; inner nodes are skipped.

    Raise CorruptTableError for an unknown node type.
    """
    while True:
        kind, _, prefix = _HEADER.unpack(cursor.take(_HEADER.size))
        if kind == _LEAF:
            key = int.from_bytes(cursor.take(_KEY_BYTES), "big")
            return key, cursor.little_uint64()
        if kind not in _BODY_BYTES or prefix < 0:
            raise cursor.error(f"node type {kind} is unknown")
        cursor.take(prefix + _BODY_BYTES[kind])


def _read_containers(cursor: ByteCursor) -> dict[int, npt.NDArray[np.uint16]]:
    containers = {}
    for array in range(cursor.little_uint32()):
        cursor.int8()  # 'nothing is trimmed', the only value Java writes
        for place in range(cursor.little_uint32()):
            if cursor.int8():
                containers[array << 32 | place] = _read_container(cursor)
    return containers


def _read_container(cursor: ByteCursor) -> npt.NDArray[np.uint16]:
    kind, count = cursor.int8(), cursor.little_uint32()
    if kind == _LIST:
        return np.frombuffer(cursor.take(2 * count), "<u2")
    if kind == _BITS:
        bits = np.unpackbits(np.frombuffer(cursor.take(8192), np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint16)
    if kind == _RUNS:
        runs = np.frombuffer(cursor.take(4 * cursor.little_uint16()), "<u2").astype(np.int64)
        begins, lengths = runs[::2], runs[1::2] + 1
        if lengths.sum() > 1 << 16:
            raise cursor.error(
                f"the runs of a container cover {lengths.sum()} numbers, more than 65536"
            )
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        low: npt.NDArray[np.uint16] = (np.repeat(begins, lengths) + inside).astype(np.uint16)
        return low
    raise cursor.error(f"container type {kind} is unknown")


def encode_long_bitmap(numbers: Longs) -> bytes:
    """Return the bitmap of ``numbers``, which may be unsorted and repeated."""
    numbers = np.unique(numbers)
    if not len(numbers):
        return b"\x00"
    highs, starts = np.unique(numbers >> np.uint64(16), return_index=True)
    keys = [int(high).to_bytes(_KEY_BYTES, "big") for high in highs]
    containers = np.split((numbers & np.uint64(0xFFFF)).astype("<u2"), starts[1:])
    count = len(keys)
    return b"".join(
        (
            struct.pack("<bq", 1, count),
            _node(keys, 0, 0),
            struct.pack("<ibi", 1, _NOT_TRIMMED, count),
            *map(_container, containers),
            struct.pack("<qii", count, 0, count - 1),
        )
    )


def _container(values: npt.NDArray[np.uint16]) -> bytes:
    if len(values) <= _MOST_IN_LIST:
        return struct.pack("<bbi", 1, _LIST, len(values)) + values.tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    packed = np.packbits(bits, bitorder="little").tobytes()
    return struct.pack("<bbi", 1, _BITS, len(values)) + packed


def _node(keys: Sequence[bytes], depth: int, first: int) -> bytes:
    """Return the encoded tree of sorted keys that share their first ``depth`` bytes.

    ``first`` is the number of the first key's container.
    """
    if len(keys) == 1:
        return _HEADER.pack(_LEAF, 0, 0) + keys[0] + struct.pack("<q", first)
    branch = depth
    while (
        keys[0][branch] == keys[-1][branch]
    ):  # keys are sorted: all share what the first and the last share
        branch += 1
    children, labels = [], []
    for label, group in groupby(keys, key=lambda key: key[branch]):
        below = list(group)
        labels.append(label)
        children.append(_node(below, branch + 1, first))
        first += len(below)
    kind, body = _body(labels)
    prefix = keys[0][depth:branch]
    return _HEADER.pack(kind, len(labels), len(prefix)) + prefix + body + b"".join(children)


def _body(labels: Sequence[int]) -> tuple[int, bytes]:
    """Return the type and the body of a node whose children have the key bytes ``labels``.

    For at most 48 children, the body is written in words of four or eight bytes, and the bytes of
    each word are in reverse order. For more children, the body is a set of 256 bits.
    """
    if len(labels) <= 4:
        return _NODE4, bytes(labels).ljust(4, b"\0")[::-1]
    if len(labels) <= 16:
        return _NODE16, _backwards(bytes(labels).ljust(16, b"\0"))
    if len(labels) <= 48:
        places = bytearray(b"\xff" * 256)
        for place, label in enumerate(labels):
            places[label] = place
        return _NODE48, _backwards(bytes(places))
    bits = np.zeros(256, np.uint8)
    bits[list(labels)] = 1
    return _NODE256, np.packbits(bits, bitorder="little").tobytes()


def _backwards(text: bytes) -> bytes:
    return np.frombuffer(text, ">u8").astype("<u8").tobytes()
