# SPDX-License-Identifier: Apache-2.0
"""``merge_map``: the union of maps; the newest value of a map key is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.elements import (
    codes_of,
    elements_of,
    maps_of,
    pairs_of,
    slice_elements,
)
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.number_states import has_value
from lakeformat.paimon.merge.functions.segments import combined, is_valid
from lakeformat.rows.groups import KeyGroups

__all__ = ["MergeMapFunction"]


@dataclass(frozen=True, slots=True)
class MergeMapFunction:
    """Merges maps: of entries with equal map keys, the last one is kept.

    A retract removes the entries whose map keys are in the retracted map.
    """

    name: str
    column: str
    keeps_single: bool = True
    swaps_late: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys, self)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        found = elements_of(flat, groups)
        pairs = pairs_of(found.keys, codes_of(flat.keys)[found.places])
        newest = np.empty(len(pairs.first), np.int64)
        # Of several assignments to one pair, numpy keeps the last.
        newest[pairs.of] = found.places
        names = flat.keys.take(pa.array(newest))
        has = has_value(is_valid(flat), groups)
        items = flat.items.take(pa.array(newest))
        return maps_of(names, items, found.keys[pairs.first], has, flat.type)

    def subtract(self, states: pa.Array, values: pa.Array) -> pa.Array:
        both = pa.concat_arrays([states, values])
        codes = codes_of(both.keys)
        found = slice_elements(both, 0, len(states))
        gone = slice_elements(both, len(states), len(values))
        keys = np.concatenate([found.keys, gone.keys])
        pairs = pairs_of(keys, codes[np.concatenate([found.places, gone.places])])
        kept = ~np.isin(pairs.of[: len(found.keys)], pairs.of[len(found.keys) :])
        places = pa.array(found.places[kept])
        names, items = both.keys.take(places), both.items.take(places)
        return maps_of(names, items, found.keys[kept], np.ones(len(states), bool), states.type)
