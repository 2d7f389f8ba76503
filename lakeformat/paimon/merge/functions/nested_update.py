# SPDX-License-Identifier: Apache-2.0
"""``nested_update``: a nested table; a new element is added, or replaces the element with the same
nested key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.collect import without
from lakeformat.paimon.merge.functions.elements import elements_of, lists_of, pairs_of
from lakeformat.paimon.merge.functions.extremes import sort_words
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.nested import NestedKey, present_elements
from lakeformat.paimon.merge.functions.number_states import has_value
from lakeformat.paimon.merge.functions.segments import combined, is_valid
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["NestedUpdateFunction"]


@dataclass(frozen=True, slots=True)
class NestedUpdateFunction:
    """Collects the elements of all arrays of a primary key, one element for each nested key.

    Of the elements with the same nested key, the one with the largest sequence is kept; without a
    sequence field, the last one. Without a nested key, all elements are kept. An array with
    ``count_limit`` elements gets no new element.
    """

    name: str
    column: str
    key: NestedKey | None
    sequence: tuple[str, ...]
    count_limit: int
    keeps_single: bool = False
    swaps_late: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys, self)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        has = has_value(is_valid(flat), groups)
        found = present_elements(flat, groups)
        if self.key is None:
            kept = _first_of_each(found.keys, self.count_limit)
            elements = flat.values.take(pa.array(found.places[kept]))
            return lists_of(elements, found.keys[kept], has, flat.type)
        found = self.key.accepted(flat.values, found, groups)
        pairs = pairs_of(found.keys, self.key.codes(flat.values)[found.places])
        winners = np.empty(len(pairs.first), np.int64)
        order = self._by_sequence(flat.values, found.places)
        # Of several assignments to one pair, numpy keeps the last.
        winners[pairs.of[order]] = order
        # A full nested table accepts no new element, because elements are never removed.
        kept = _first_of_each(found.keys[pairs.first], self.count_limit)
        elements = flat.values.take(pa.array(found.places[winners[kept]]))
        return lists_of(elements, found.keys[pairs.first[kept]], has, flat.type)

    def subtract(self, states: pa.Array, values: pa.Array) -> pa.Array:
        states, values = _without_null_elements(states), _without_null_elements(values)
        if self.key is None:
            return without(states, values, every=True)
        both = pa.concat_arrays([states, values])
        everything = np.arange(len(both))
        found = elements_of(both, KeyGroups(everything, everything))
        count = len(states)
        pairs = pairs_of(found.keys % count, self.key.codes(both.values)[found.places])
        mine = found.rows < count
        # Of several elements with one key, the last one is the result.
        last = np.full(len(pairs.first), -1, np.int64)
        last[pairs.of[mine]] = np.flatnonzero(mine)
        last[pairs.of[~mine]] = -1
        kept = np.sort(last[last >= 0])
        elements = both.values.take(pa.array(found.places[kept]))
        return lists_of(elements, found.keys[kept], np.ones(count, bool), states.type)

    def _by_sequence(self, rows: pa.Array, places: Positions) -> Positions:
        """Return the order of elements from oldest to newest: by sequence, nulls first, then by
        arrival.
        """
        words = []
        for member in self.sequence:
            column = pc.struct_field(rows, [member])
            words += [np.asarray(column.is_valid())[places], sort_words(column)[places]]
            words[-1] = np.where(words[-2], words[-1], 0)
        return np.lexsort(words[::-1]) if words else np.arange(len(places))


def _first_of_each(keys: Positions, limit: int) -> Positions:
    """Return the positions of the first ``limit`` elements of each key; ``keys`` is sorted."""
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys)
    return np.flatnonzero(rank < limit)


def _without_null_elements(lists: pa.Array) -> pa.Array:
    if lists.values.null_count == 0:
        return lists
    everything = np.arange(len(lists))
    found = present_elements(lists, KeyGroups(everything, everything))
    elements = lists.values.take(pa.array(found.places))
    return lists_of(elements, found.keys, np.asarray(lists.is_valid()), lists.type)
