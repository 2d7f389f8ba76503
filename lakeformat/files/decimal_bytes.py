# SPDX-License-Identifier: Apache-2.0
"""Decimals as Avro stores them: big-endian two's complement, in as few bytes as possible."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.decimal_range import check_decimals

__all__ = ["decimals_from_bytes", "decimals_to_bytes"]

WIDTH = 16
"""The size in bytes of an Arrow decimal, whose bytes are little-endian."""


def decimals_from_bytes(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return binary values as decimals of the type ``wanted``.

    Raise ``ValueError`` for a value of more than 16 bytes, and for one that ``check_decimals``
    refuses.
    """
    starts, ends, content = _ranges(array)
    sizes = ends - starts
    if len(sizes) and sizes.max() > WIDTH:
        raise ValueError(f"a decimal has {sizes.max()} bytes, but {wanted} has at most {WIDTH}")
    filler = np.zeros(len(sizes), np.uint8)
    full = sizes > 0
    filler[full] = np.where(content[starts[full]] >= 0x80, 0xFF, 0)
    words = np.repeat(filler[:, None], WIDTH, axis=1)
    for place in range(WIDTH):
        there = sizes > place
        words[there, place] = content[ends[there] - 1 - place]
    validity = None if not array.null_count else array.is_valid().buffers()[1]
    buffers = [validity, pa.py_buffer(words.tobytes())]
    found = pa.Array.from_buffers(wanted, len(array), buffers, array.null_count)
    check_decimals(found)
    return found


def decimals_to_bytes(array: pa.Array) -> pa.Array:
    """Return a binary array with each decimal in as few bytes as possible."""
    count = len(array)
    content = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    first = array.offset * WIDTH
    words = content[first : first + count * WIDTH].reshape(count, WIDTH)[:, ::-1]
    minimal = _minimal(words)
    return pc.if_else(array.is_valid(), minimal, None) if array.null_count else minimal


def _minimal(words: npt.NDArray[np.uint8]) -> pa.Array:
    """Return each big-endian word as binary, without leading bytes that only repeat the sign."""
    signs = np.where(words[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    is_sign = words[:, :-1] == signs
    # The byte after a dropped one must still have the sign in its highest bit.
    shows_sign = (words[:, 1:] >= 0x80) == (signs >= 0x80)
    dropped = np.cumprod(is_sign & shows_sign, axis=1, dtype=np.int64).sum(axis=1)
    kept = np.arange(WIDTH) >= dropped[:, None]
    offsets = np.zeros(len(words) + 1, np.int32)
    np.cumsum(WIDTH - dropped, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(words[kept].tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(words), buffers)


def _ranges(
    array: pa.Array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the start and the end of each binary value, and the bytes of all values. A null has an
    empty range.
    """
    _, offsets_buffer, content = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if array.null_count:
        ends = np.where(array.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return starts, ends, np.frombuffer(content or b"", np.uint8)
