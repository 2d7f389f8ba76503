# SPDX-License-Identifier: Apache-2.0
"""``collect``: joins arrays, either with all elements or with each distinct element once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.elements import (
    codes_of,
    elements_of,
    lists_of,
    pairs_of,
    slice_elements,
)
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.number_states import has_value
from lakeformat.paimon.merge.functions.segments import combined, is_valid
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["CollectFunction", "without"]


@dataclass(frozen=True, slots=True)
class CollectFunction:
    """Collects the elements of arrays, or with ``distinct`` each distinct element once.

    For each element of a retracted array, one equal element of the collected array is removed.
    """

    name: str
    column: str
    distinct: bool
    keeps_single: bool = False
    swaps_late: bool = False

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys, self, ignores_null=not self.distinct)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        found = elements_of(flat, groups)
        keys, places = found.keys, found.places
        if self.distinct:
            chosen = np.sort(pairs_of(keys, codes_of(flat.values)[places]).first)
            keys, places = keys[chosen], places[chosen]
        has = has_value(is_valid(flat), groups)
        return lists_of(flat.values.take(pa.array(places)), keys, has, flat.type)

    def subtract(self, states: pa.Array, values: pa.Array) -> pa.Array:
        return without(states, values, every=False)


def without(states: pa.Array, values: pa.Array, *, every: bool) -> pa.Array:
    """Subtract from each list of ``states`` the list at the same position in ``values``.

    With ``every``, an element of ``values`` removes all equal elements; otherwise it removes one.
    """
    both = pa.concat_arrays([states, values])
    codes = codes_of(both.values)
    found = slice_elements(both, 0, len(states))
    gone = slice_elements(both, len(states), len(values))
    keys = np.concatenate([found.keys, gone.keys])
    pairs = pairs_of(keys, codes[np.concatenate([found.places, gone.places])])
    mine, theirs = pairs.of[: len(found.keys)], pairs.of[len(found.keys) :]
    taken_out = np.bincount(theirs, minlength=len(pairs.first))
    if every:
        kept = taken_out[mine] == 0
    else:
        kept = _occurrence(mine) >= taken_out[mine]
    elements = both.values.take(pa.array(found.places[kept]))
    return lists_of(elements, found.keys[kept], np.ones(len(states), bool), states.type)


def _occurrence(pairs: Positions) -> Positions:
    """Return, for each element, the number of equal elements before it in its list."""
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    before = np.empty(len(pairs), np.int64)
    before[order] = np.arange(len(pairs)) - np.searchsorted(ordered, ordered)
    return before
