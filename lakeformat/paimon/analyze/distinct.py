# SPDX-License-Identifier: Apache-2.0
"""The number of distinct values of a column: exact up to a limit, then estimated.

The estimate is HyperLogLog with 16,384 registers: its error is about 1 percent, and its
memory is the same for any number of values.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from lakeformat.rows.key_words import column_words

__all__ = ["DistinctCount"]

EXACT_VALUES = 100_000
"""Up to this number of distinct values, the values are kept and the count is exact."""

_INDEX_BITS = 14
_REGISTERS = 1 << _INDEX_BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)
_Hashes = npt.NDArray[np.uint64]


class DistinctCount:
    """Counts the distinct values of a column, batch by batch; nulls are not counted."""

    def __init__(self, exact_values: int = EXACT_VALUES) -> None:
        self._exact_values = exact_values
        self._values: pa.Array | None = None
        self._registers: npt.NDArray[np.uint8] | None = None

    def add(self, column: pa.Array) -> None:
        """Add the next values of the column."""
        found = pc.unique(column).drop_null()
        if self._registers is None and self._values is not None:
            found = pc.unique(pa.concat_arrays([self._values, found]))
        if self._registers is None and len(found) <= self._exact_values:
            self._values = found
            return
        if self._registers is None:
            self._registers, self._values = np.zeros(_REGISTERS, np.uint8), None
        _add(self._registers, _hashes(found))

    @property
    def count(self) -> int:
        """The number of distinct values: exact for few values, otherwise estimated."""
        if self._registers is not None:
            return _estimate(self._registers)
        return 0 if self._values is None else len(self._values)


def _hashes(values: pa.Array) -> _Hashes:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = values.cast(pa.large_binary())
    if pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type):
        hashed = map(xxhash.xxh64_intdigest, values.to_pylist())
        return np.fromiter(hashed, np.uint64, len(values))
    found = np.zeros(len(values), np.uint64)
    for word in column_words(values):
        found = _mixed(found ^ word(None))
    return found


def _mixed(words: _Hashes) -> _Hashes:
    """Mix 64-bit words so that each bit of the result depends on all bits of the word
    (SplitMix64).
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _add(registers: npt.NDArray[np.uint8], hashes: _Hashes) -> None:
    """Update HyperLogLog registers: each register keeps the largest rank of its hashes."""
    index = (hashes >> np.uint64(64 - _INDEX_BITS)).astype(np.int64)
    rest = (hashes << np.uint64(_INDEX_BITS)) | np.uint64(1 << (_INDEX_BITS - 1))
    _, exponent = np.frexp(rest.astype(np.float64))
    np.maximum.at(registers, index, (65 - exponent).astype(np.uint8))


def _estimate(registers: npt.NDArray[np.uint8]) -> int:
    raw = _ALPHA * _REGISTERS**2 / float(np.exp2(-registers.astype(np.float64)).sum())
    empty = int((registers == 0).sum())
    if raw <= 2.5 * _REGISTERS and empty:
        raw = _REGISTERS * math.log(_REGISTERS / empty)
    return round(raw)
