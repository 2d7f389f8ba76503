"""Values gathered by key: what the reductions of all functions begin with."""

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
    """A column in one piece."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def is_valid(values: pa.Array) -> Mask | None:
    """Which values are not null; None if all are."""
    if values.null_count == 0:
        return None
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def take_or_null(values: Column, positions: Positions) -> pa.Array:
    """The values at positions, null where a position is negative."""
    missing = positions < 0
    if not missing.any():
        return combined(values.take(pa.array(positions)))
    return combined(values.take(pa.array(np.where(missing, 0, positions), mask=missing)))


def ranks_of(groups: KeyGroups) -> Iterator[tuple[Positions, Positions]]:
    """The rows in rounds: the first of every key, then the second of those that have one, ..."""
    # Keys by falling size: those that have a row at some rank come first.
    by_size = np.argsort(-groups.sizes, kind="stable")
    most = int(groups.sizes.max(initial=0))
    having = np.searchsorted(-groups.sizes[by_size], -np.arange(most), side="left").tolist()
    starts = groups.starts[by_size]
    for rank, count in enumerate(having):
        yield by_size[:count], groups.order[starts[:count] + rank]


def present(values: pa.Array, groups: KeyGroups) -> tuple[Positions, Positions]:
    """The rows that are not null, in merge order, each with its key."""
    valid = is_valid(values)
    if valid is None:
        return groups.key_of, groups.order
    places = np.flatnonzero(valid[groups.order])
    return groups.key_of[places], groups.order[places]


def raw_numbers(values: pa.Array, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers as they lie in memory; those that stand for null mean nothing."""
    numbers: npt.NDArray[Any] = np.frombuffer(values.buffers()[1] or b"", kind)
    return numbers[values.offset : values.offset + len(values)]


def of_keys(groups: KeyGroups, keys: Positions) -> KeyGroups:
    """The groups of some keys alone, numbered anew in the order given."""
    sizes = groups.sizes[keys]
    ends = np.cumsum(sizes)
    starts = ends - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    return KeyGroups(groups.order[np.repeat(groups.starts[keys], sizes) + inside], starts)
