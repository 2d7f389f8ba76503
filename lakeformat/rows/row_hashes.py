# SPDX-License-Identifier: Apache-2.0
"""Hashes of whole rows, 128 bits each, for columns of any type.

Equal rows have equal hashes in any batch: null equals null, NaN equals NaN, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.files.nested_arrays import map_entries
from lakeformat.types.arrow_memory import null_mask, numbers, spans
from lakeformat.types.unaligned import Positions, WordReader, Words

__all__ = ["Hashes", "row_hashes"]

Hashes: TypeAlias = npt.NDArray[np.uint64]
"""The hashes of rows: an array with two 64-bit words per row."""

_SALTS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))
"""A constant for each of the two words, so that a collision in one does not imply one in the other.
"""
_STEP = np.uint64(0xA0761D6478BD642F)
_OF_NULL = np.uint64(0xE7037ED1A0B428DB)
_WORD_BYTES = 8
_MOST_WORDS = 1 << 20
"""A long column is hashed in pieces of about this many words, to save memory; a longer text is a
piece of its own.
"""


def row_hashes(columns: Sequence[pa.Array]) -> Hashes:
    """Return the hash of each row; at least one column must be given."""
    return np.stack([_combined(columns, salt) for salt in _SALTS], axis=1)


def _combined(columns: Sequence[pa.Array], salt: np.uint64) -> Words:
    found = np.full(len(columns[0]), salt)
    for column in columns:
        found = _mixed(found ^ _hashed(column, salt))
    return found


def _hashed(column: pa.Array, salt: np.uint64) -> Words:
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _OF_NULL)
    nulls = null_mask(column)
    if pa.types.is_struct(kind):
        found = _combined(column.flatten(), salt) if kind.num_fields else np.full(len(column), salt)
    elif pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        found = _hashed_lists(column, salt)
    elif _is_bytes(kind):
        found = _hashed_bytes(column, nulls, salt)
    elif pa.types.is_decimal(kind):
        halves = numbers(column)
        found = _mixed(_mixed(halves[:, 0] ^ salt) ^ halves[:, 1])
    else:
        found = _mixed(_number_words(column) ^ salt)
    return found if nulls is None else np.where(nulls, _OF_NULL, found)


def _number_words(column: pa.Array) -> Words:
    values = numbers(column)
    if pa.types.is_floating(column.type):
        plain = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
        return plain.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return values.astype(np.int64).view(np.uint64)


def _hashed_lists(column: pa.Array, salt: np.uint64) -> Words:
    """Return one hash for each list or map: the hash of the sequence of its elements."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    parts = map_entries(column) if pa.types.is_map(column.type) else [column.values]
    elements = _combined([each.slice(first, size) for each in parts], salt)
    counts = np.diff(offsets)
    return _hashed_sequences(elements, counts, counts, salt)


def _hashed_bytes(column: pa.Array, nulls: npt.NDArray[np.bool_] | None, salt: np.uint64) -> Words:
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    words, starts, sizes = spans(column, nulls)
    counts = (sizes + _WORD_BYTES - 1) // _WORD_BYTES
    ends = np.cumsum(counts)
    # Rows with about the same number of words per piece; a longer value is a piece of its own.
    cuts = np.unique(np.searchsorted(ends, np.arange(_MOST_WORDS, ends[-1:].sum(), _MOST_WORDS)))
    bounds = [0, *cuts.tolist(), len(column)]
    found = np.empty(len(column), np.uint64)
    for start, end in pairwise(bounds):
        rows = slice(start, end)
        content = _words_of(words, starts[rows], sizes[rows], counts[rows])
        found[rows] = _hashed_sequences(content, counts[rows], sizes[rows], salt)
    return found


def _words_of(words: Words, starts: Positions, sizes: Positions, counts: Positions) -> Words:
    """Return the bytes of values as 64-bit words; the last word of a value is padded with zeros.

    ``words``, ``starts`` and ``sizes`` come from ``spans``. ``counts`` has the number of words of
    each value.
    """
    before = _WORD_BYTES * _places(counts)
    content = WordReader(words, np.repeat(starts, counts) + before).read(len(before))
    left = np.repeat(sizes, counts) - before
    unused = (np.maximum(_WORD_BYTES - left, 0) << 3).view(np.uint64)
    padded: Words = (content << unused) >> unused
    return padded


def _hashed_sequences(parts: Words, counts: Positions, sizes: Positions, salt: np.uint64) -> Words:
    """Return one hash for each sequence in ``parts``, where the sequences follow each other.

    ``counts`` has the number of elements of each sequence, and ``sizes`` its size in bytes or
    elements. The sizes are hashed, too, so that a text and the same text with zeros at its end
    differ.
    """
    steps = _places(counts).view(np.uint64) * _STEP
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(parts ^ salt ^ steps))])
    ends = np.cumsum(counts)
    whole = sums[ends] - sums[ends - counts]
    return _mixed(whole ^ _mixed(sizes.astype(np.uint64) ^ salt))


def _places(counts: Positions) -> Positions:
    """Return, for each element, its position within its sequence.

    ``counts`` has the length of each sequence.
    """
    ends = np.cumsum(counts)
    places: Positions = np.arange(counts.sum(), dtype=np.int64) - np.repeat(ends - counts, counts)
    return places


def _mixed(words: Words) -> Words:
    """Return words with their bits mixed; different words have different results."""
    found = words ^ (words >> np.uint64(30))
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (
        types.is_string,
        types.is_binary,
        types.is_large_string,
        types.is_large_binary,
        types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)
