# SPDX-License-Identifier: Apache-2.0
"""Pairs equal rows of two sides, each row at most once."""

from __future__ import annotations

import numpy as np

from lakeformat.rows.groups import Mask
from lakeformat.rows.row_hashes import Hashes

__all__ = ["paired_rows"]


def paired_rows(left: Hashes, right: Hashes) -> tuple[Mask, Mask]:
    """Mask the rows of each side that have an equal one on the other side.

    A row that one side has twice and the other once is paired once.
    """
    both = np.concatenate([left, right])
    paired = np.zeros(len(both), np.bool_)
    if len(left) and len(right):
        order = np.lexsort((both[:, 1], both[:, 0]))  # stable: rows of the left side come first
        ordered = both[order]
        starts = np.flatnonzero(
            np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))  # the first of equal rows
        )
        sizes = np.diff(np.append(starts, len(both)))
        of_left = np.add.reduceat((order < len(left)).astype(np.int64), starts)
        pairs = np.minimum(of_left, sizes - of_left)
        place = np.arange(len(both)) - np.repeat(starts, sizes)
        lefts = np.repeat(of_left, sizes)
        place = np.where(place < lefts, place, place - lefts)
        paired[order] = place < np.repeat(pairs, sizes)
    return paired[: len(left)], paired[len(left) :]
