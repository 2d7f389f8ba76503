# SPDX-License-Identifier: Apache-2.0
"""Decodes columns of base64 texts: all texts of an array at once, without a loop over rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import lakeformat as lake

__all__ = ["decimals_of", "decoded"]

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_STRANGE = 255
_PAD = ord("=")
_DECIMAL_BYTES = 16
_VALUES = np.full(256, _STRANGE, np.uint8)
_VALUES[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64, dtype=np.uint8)
_VALUES[_PAD] = 0


def decoded(texts: pa.Array, column: str) -> pa.Array:
    """Return the bytes of each text as LARGE_BINARY; raise ``InvalidRequestError``, which names
    ``column``, for a text that is not base64.

    All texts are decoded together, which is possible because the length of each text is a multiple
    of four.
    """
    offsets, data = _buffers(texts)
    lengths = np.diff(offsets)
    if (lengths % 4).any() or (_VALUES[data] == _STRANGE).any() or _has_early_pads(offsets, data):
        raise lake.InvalidRequestError(
            f"column {column!r} has a value that is not base64: let the source send base64, or "
            "leave the column out of the messages"
        )
    groups = _VALUES[data].reshape(-1, 4).astype(np.uint32)
    whole = (groups[:, 0] << 18) | (groups[:, 1] << 12) | (groups[:, 2] << 6) | groups[:, 3]
    plain = np.stack([whole >> 16, (whole >> 8) & 255, whole & 255], axis=1).astype(np.uint8)
    pads = _pads(offsets, data)
    sizes = lengths // 4 * 3 - pads
    keep = np.ones(plain.size, bool)
    ends = (offsets[1:] // 4) * 3
    keep[ends[pads >= 1] - 1] = False
    keep[ends[pads >= 2] - 2] = False
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return _large_binary(starts, plain.reshape(-1)[keep], texts)


def decimals_of(texts: pa.Array, scale: int, column: str) -> pa.Array:
    """Return decimals with ``scale`` digits after the point, from base64 texts of unscaled numbers
    in two's complement, the highest byte first.

    Raise ``InvalidRequestError`` for text that is not base64, and for a number of more than 16
    bytes.
    """
    offsets, data = _buffers(decoded(texts, column))
    sizes = np.diff(offsets)
    if (sizes > _DECIMAL_BYTES).any():
        raise lake.InvalidRequestError(
            f"column {column!r} has a number of more than 38 digits: set Debezium's "
            "'decimal.handling.mode' to 'string', or leave the column out of the messages"
        )
    filled = np.zeros((len(sizes), _DECIMAL_BYTES), np.uint8)
    there = sizes > 0
    filled[there] = np.where(data[offsets[:-1][there]] >= 128, 255, 0)[:, None]  # the sign
    rows = np.repeat(np.arange(len(sizes)), sizes)
    behind = np.repeat(offsets[1:], sizes) - np.arange(offsets[0], offsets[-1]) - 1
    filled[rows, behind] = data[offsets[0] : offsets[-1]]  # Arrow has the lowest byte first
    nulls = texts.is_null().to_numpy(zero_copy_only=False)
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little").tobytes())
    buffers = [validity, pa.py_buffer(filled.tobytes())]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(texts), buffers)


def _buffers(array: pa.Array) -> tuple[Numbers, Bytes]:
    """Return the offset of each text within the bytes of all texts, and these bytes.

    The first offset is 0. Nulls have no bytes.
    """
    whole = array.fill_null(b"" if pa.types.is_large_binary(array.type) else "")
    whole = pa.concat_arrays([whole.cast(pa.large_binary())])
    offsets = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset :][: len(whole) + 1]
    content = whole.buffers()[2]
    data = np.frombuffer(content or b"", np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], data


def _pads(offsets: Numbers, data: Bytes) -> Numbers:
    """Return the number of padding characters at the end of each text, at most two."""
    lengths, ends = np.diff(offsets), offsets[1:]
    pads = np.zeros(len(ends), np.int64)
    there = lengths > 0
    is_last = data[ends[there] - 1] == _PAD
    pads[there] = is_last.astype(np.int64) + (is_last & (data[ends[there] - 2] == _PAD))
    return pads


def _has_early_pads(offsets: Numbers, data: Bytes) -> bool:
    """Return True if a text has a padding character before its end."""
    return bool((data == _PAD).sum() != _pads(offsets, data).sum())


def _large_binary(starts: Numbers, data: Bytes, like: pa.Array) -> pa.Array:
    nulls = like.is_null().to_numpy(zero_copy_only=False)
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little").tobytes())
    buffers = [validity, pa.py_buffer(starts.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(like), buffers)
