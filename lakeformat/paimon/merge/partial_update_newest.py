# SPDX-License-Identifier: Apache-2.0
"""Finds the source rows of partial updates for all keys at once.

The result is right only for keys without -U and -D rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from lakeformat.paimon.merge.partial_update_sequence import NEVER, Sequences
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["NOWHERE", "newest_by_sequence", "newest_valid"]

NOWHERE = -1
"""The position of a source row that does not exist; the merged value is then null."""
_BITS = 8
_STEPS = 8
"""The number of newest rows of each key that are searched one by one for a non-null value.

All older rows are searched at once.
"""


def newest_valid(
    validity: Mapping[str, Mask], groups: KeyGroups, newest: Positions
) -> dict[str, Positions]:
    """Return, for each column and each key, the position of the last row with a non-null value.

    The position is ``NOWHERE`` if the key has no such row. ``validity`` has the mask of non-null
    values of each column, ``newest`` the position of the last row of each key.
    """
    found: dict[str, Positions] = {}
    columns = iter(validity.items())
    while some := dict(islice(columns, _BITS)):
        found.update(_newest_valid(some, groups, newest))
    return found


def _newest_valid(
    validity: Mapping[str, Mask], groups: KeyGroups, newest: Positions
) -> dict[str, Positions]:
    """Do the same as ``newest_valid`` for at most eight columns, which share one byte per row."""
    bits = {name: np.uint8(1 << number) for number, name in enumerate(validity)}
    valid = np.bitwise_or.reduce(
        [validity[name].view(np.uint8) * bit for name, bit in bits.items()]
    )
    seen = valid[newest]
    keys = np.flatnonzero(seen != (1 << len(bits)) - 1)
    starts, ends, seen = groups.starts[keys], groups.ends[keys], seen[keys]
    ages = {name: (seen & bit == 0).astype(np.uint8) for name, bit in bits.items()}
    steps = min(_STEPS, int((ends - starts).max(initial=1)))
    for step in range(1, steps):
        # A key without further rows repeats its oldest row, which changes nothing.
        seen |= valid[groups.order[np.maximum(ends - 1 - step, starts)]]
        for name, bit in bits.items():
            ages[name] += seen & bit == 0
    found = {}
    for name, bit in bits.items():
        rows = groups.order[np.maximum(ends - 1 - ages[name], starts)]
        missing = np.flatnonzero(seen & bit == 0)
        rows[missing] = NOWHERE
        deep = missing[(ends - starts)[missing] > steps]
        older = _slices(groups, keys[deep], (ends - starts)[deep] - steps)
        rows[deep] = _last(validity[name][older.order], older)
        found[name] = newest.copy()
        found[name][keys] = rows
    return found


def _slices(groups: KeyGroups, keys: Positions, sizes: Positions) -> KeyGroups:
    """Return groups with only the oldest rows of each of ``keys``.

    ``sizes`` has the number of these rows for each key.
    """
    ends = np.cumsum(sizes)
    starts = ends - sizes
    places = np.arange(sizes.sum()) + np.repeat(groups.starts[keys] - starts, sizes)
    return KeyGroups(groups.order[places], starts)


def newest_by_sequence(sequences: Sequences, groups: KeyGroups) -> Positions:
    """Return, for each key, the position of the row with the largest sequence.

    Of rows with equal sequences, the last one is taken. The position is ``NOWHERE`` if no row has a
    sequence.
    """
    numbers = sequences.numbers[groups.order]
    largest = np.maximum.reduceat(numbers, groups.starts)
    wins = numbers == np.repeat(largest, groups.sizes)
    if (largest == NEVER).any():
        wins &= sequences.present[groups.order]
    return _last(wins, groups)


def _last(marked: Mask, groups: KeyGroups) -> Positions:
    """Return the position of the newest marked row of each key; ``NOWHERE`` without a marked row.

    ``marked`` is a mask in the order of ``groups.order``.
    """
    if not len(groups):
        return groups.order
    places = np.where(marked, np.arange(len(marked)), NOWHERE)
    last = np.maximum.reduceat(places, groups.starts)
    found: Positions = np.where(last == NOWHERE, NOWHERE, groups.order[last])
    return found
