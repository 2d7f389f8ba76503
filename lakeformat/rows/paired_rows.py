# SPDX-License-Identifier: Apache-2.0
"""Pairs equal rows of two inputs by their hashes; each row is in at most one pair."""

from __future__ import annotations

import numpy as np

from lakeformat.rows.groups import Mask, Positions
from lakeformat.rows.row_hashes import Hashes

__all__ = ["paired_rows"]


def paired_rows(left: Hashes, right: Hashes) -> tuple[Mask, Mask]:
    """Return two masks: the rows of each side that are paired with an equal row of the other side.

    If a row occurs twice on one side and once on the other, one of its two copies is not paired.
    """
    both = np.concatenate([left, right])
    paired = np.zeros(len(both), np.bool_)
    if len(left) and len(right):
        order = np.argsort(both[:, 0])
        starts, sizes = _runs(both[order, 0])
        # Most rows have at most one equal row; only the rest is sorted by both words.
        firsts = starts[sizes == 2]
        one, other = order[firsts], order[firsts + 1]
        is_pair = ((one < len(left)) != (other < len(left))) & (both[one, 1] == both[other, 1])
        paired[one[is_pair]] = paired[other[is_pair]] = True
        if (sizes > 2).any():
            rows = np.sort(order[np.repeat(sizes > 2, sizes)])
            paired[rows] = _paired_in_runs(both[rows], rows < len(left))
    return paired[: len(left)], paired[len(left) :]


def _paired_in_runs(rows: Hashes, is_left: Mask) -> Mask:
    """Return a mask of the rows that are paired with an equal row of the other side.

    If a row occurs twice on one side and once on the other, one of its two copies is not paired.
    ``is_left`` marks the rows of the left side, which come first in ``rows``.
    """
    order = np.lexsort((rows[:, 1], rows[:, 0]))  # stable, so the left side comes first
    starts, sizes = _runs(rows[order])
    of_left = np.add.reduceat(is_left[order].astype(np.int64), starts)
    pairs = np.minimum(of_left, sizes - of_left)
    place = np.arange(len(rows)) - np.repeat(starts, sizes)
    lefts = np.repeat(of_left, sizes)
    place = np.where(place < lefts, place, place - lefts)
    paired = np.empty(len(rows), np.bool_)
    paired[order] = place < np.repeat(pairs, sizes)
    return paired


def _runs(ordered: Hashes) -> tuple[Positions, Positions]:
    """Return the start and the length of each run of equal elements in ``ordered``."""
    differs = ordered[1:] != ordered[:-1]
    if differs.ndim > 1:
        differs = differs.any(axis=1)
    starts = np.flatnonzero(np.append(True, differs))
    return starts, np.diff(np.append(starts, len(ordered)))
