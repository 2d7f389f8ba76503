# SPDX-License-Identifier: Apache-2.0
"""Gathers values by key, the first step of a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import Column
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["combined", "is_valid", "of_keys", "present", "ranks_of", "raw_numbers", "take_or_null"]


def combined(values: Column) -> pa.Array:
    """Return a column as one Arrow array; chunks are concatenated."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def is_valid(values: pa.Array) -> Mask | None:
    """Return a mask of the values that are not null; None if no value is null."""
    if values.null_count == 0:
        return None
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def take_or_null(values: Column, positions: Positions) -> pa.Array:
    """Return the values at ``positions``; null for a negative position."""
    missing = positions < 0
    if not missing.any():
        return combined(values.take(pa.array(positions)))
    return combined(values.take(pa.array(np.where(missing, 0, positions), mask=missing)))


def ranks_of(groups: KeyGroups) -> Iterator[tuple[Positions, Positions]]:
    """Yield rounds: the first row of every key, then the second row of every key that has one, ...

    A round has the numbers of its keys, and for each key the position of its row.
    """
    # Sort keys by falling size: the keys that have a row in a round are the first ones.
    by_size = np.argsort(-groups.sizes, kind="stable")
    most = int(groups.sizes.max(initial=0))
    having = np.searchsorted(-groups.sizes[by_size], -np.arange(most), side="left").tolist()
    starts = groups.starts[by_size]
    for rank, count in enumerate(having):
        yield by_size[:count], groups.order[starts[:count] + rank]


def present(values: pa.Array, groups: KeyGroups) -> tuple[Positions, Positions]:
    """Return, in merge order, the key number and the row position of each non-null value."""
    valid = is_valid(values)
    if valid is None:
        return groups.key_of, groups.order
    places = np.flatnonzero(valid[groups.order])
    return groups.key_of[places], groups.order[places]


def raw_numbers(values: pa.Array, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the memory of an Arrow array as numpy numbers of type ``kind``, without a copy.

    For a null the number is arbitrary.
    """
    numbers: npt.NDArray[Any] = np.frombuffer(values.buffers()[1] or b"", kind)
    return numbers[values.offset : values.offset + len(values)]


def of_keys(groups: KeyGroups, keys: Positions) -> KeyGroups:
    """Return the groups of ``keys`` alone; the group of ``keys[i]`` gets the key number i."""
    sizes = groups.sizes[keys]
    ends = np.cumsum(sizes)
    starts = ends - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    return KeyGroups(groups.order[np.repeat(groups.starts[keys], sizes) + inside], starts)
