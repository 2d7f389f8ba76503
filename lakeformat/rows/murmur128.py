# SPDX-License-Identifier: Apache-2.0
"""Murmur3 x64-128 over many values at once, as far as Apache DataSketches uses it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["hash_to_long"]

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ADD1, _ADD2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE, _33 = np.uint64(5), np.uint64(33)
_BLOCK = 16

_Lanes = NDArray[np.uint64]


def hash_to_long(values: pa.Array, seed: int) -> NDArray[np.int64]:
    """Return the hash of each value, reduced to 63 bits; empty values are left out.

    Of each hash of 128 bits, the result has the upper 63 bits of the first half. ``values`` is a
    binary array without nulls. The result is not in the order of ``values``.
    """
    lengths = pc.binary_length(values)
    found = [np.empty(0, np.uint64)]
    for length in lengths.unique().to_pylist():
        if length:
            alike = values.filter(pc.equal(lengths, length))
            found.append(_hash_alike(_words(alike, length), length, seed))
    return (np.concatenate(found) >> np.uint64(1)).view(np.int64)


def _words(values: pa.Array, length: int) -> _Lanes:
    """Return one row of little-endian 64-bit words for each value of ``length`` bytes.

    A row is padded with zeros to whole blocks of 16 bytes.
    """
    content = pa.concat_arrays([values]).cast(pa.binary(length)).buffers()[1]
    rows = np.frombuffer(content, np.uint8, len(values) * length).reshape(len(values), length)
    blocks = -(-length // _BLOCK)
    padded = np.zeros((len(values), blocks * _BLOCK), np.uint8)
    padded[:, :length] = rows
    return padded.view("<u8").astype(np.uint64)


def _hash_alike(words: _Lanes, length: int, seed: int) -> _Lanes:
    """Return the first 64 bits of the hash of each row of ``words``.

    Without the padding, each row has ``length`` bytes.
    """
    h1 = np.full(len(words), seed, np.uint64)
    h2 = h1.copy()
    whole = length // _BLOCK
    for block in range(words.shape[1] // 2):
        h1 ^= _rotated(words[:, 2 * block] * _C1, 31) * _C2
        if block < whole:
            h1 = (_rotated(h1, 27) + h2) * _FIVE + _ADD1
        h2 ^= _rotated(words[:, 2 * block + 1] * _C2, 33) * _C1
        if block < whole:
            h2 = (_rotated(h2, 31) + h1) * _FIVE + _ADD2
    size = np.uint64(length)
    h1, h2 = h1 ^ size, h2 ^ size
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _finished(h1), _finished(h2)
    return h1 + h2


def _rotated(values: _Lanes, bits: int) -> _Lanes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _finished(values: _Lanes) -> _Lanes:
    values = (values ^ (values >> _33)) * _MIX1
    values = (values ^ (values >> _33)) * _MIX2
    return values ^ (values >> _33)
