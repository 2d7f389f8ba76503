# SPDX-License-Identifier: Apache-2.0
"""Compares rows for equality: null equals null and NaN equals NaN, also inside nested values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.key_order import orderable

__all__ = ["equal_rows", "equal_values"]

Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Table, right: pa.Table) -> Mask:
    """Return a mask of the positions at which two tables with the same columns have equal rows."""
    equal = np.ones(left.num_rows, np.bool_)
    for mine, theirs in zip(left.columns, right.columns, strict=True):
        equal &= equal_values(mine.combine_chunks(), theirs.combine_chunks())
    return equal


def equal_values(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the positions at which two arrays of one type have equal values."""
    missing, theirs = _nulls(left), _nulls(right)
    both = np.flatnonzero(~missing & ~theirs)
    equal: Mask = missing & theirs
    if len(both):
        rows = pa.array(both)
        equal[both] = _equal_present(left.take(rows), right.take(rows))
    return equal


def _equal_present(left: pa.Array, right: pa.Array) -> Mask:
    kind = left.type
    if pa.types.is_struct(kind):
        equal = np.ones(len(left), np.bool_)
        for mine, theirs in zip(left.flatten(), right.flatten(), strict=True):
            equal &= equal_values(mine, theirs)
        return equal
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return _equal_lists(left, right)
    if pa.types.is_floating(kind):
        left, right = (
            orderable(pa.chunked_array([each])).combine_chunks() for each in (left, right)
        )
    found: Mask = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return found


def _equal_lists(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the rows whose two lists have the same length and equal elements.

    A map is compared as the list of its entries.
    """
    starts, sizes = _extents(left)
    their_starts, their_sizes = _extents(right)
    equal: Mask = sizes == their_sizes
    rows = np.flatnonzero(equal & (sizes > 0))
    if not len(rows):
        return equal
    counts = sizes[rows]
    firsts = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(firsts, counts)
    mine = _elements(left).take(pa.array(np.repeat(starts[rows], counts) + within))
    theirs = _elements(right).take(pa.array(np.repeat(their_starts[rows], counts) + within))
    equal[rows] = np.logical_and.reduceat(equal_values(mine, theirs), firsts)
    return equal


def _extents(lists: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], np.diff(offsets)


def _elements(lists: pa.Array) -> pa.Array:
    if not pa.types.is_map(lists.type):
        return lists.values
    names = ["key", "value"]
    return pa.StructArray.from_arrays([lists.keys, lists.items], names)


def _nulls(values: pa.Array) -> Mask:
    found: Mask = values.is_null().to_numpy(zero_copy_only=False)
    return found
