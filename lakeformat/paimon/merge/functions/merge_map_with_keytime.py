# SPDX-License-Identifier: Apache-2.0
"""``merge_map_with_keytime``: the union of maps; each map key keeps the value with the
latest time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.elements import codes_of, elements_of, maps_of, pairs_of
from lakeformat.paimon.merge.functions.extremes import sort_words
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.number_states import has_value
from lakeformat.paimon.merge.functions.segments import combined, is_valid
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["MergeMapWithKeyTimeFunction"]


@dataclass(frozen=True, slots=True)
class MergeMapWithKeyTimeFunction:
    """Merges entries by map key, and keeps the entry whose time is the latest.

    The time is a member of the entry's value. The first map is taken unchanged. In later maps, a
    null value deletes the entry, and an entry without a time is ignored.
    """

    name: str
    column: str
    time_member: str
    keeps_single: bool = True
    swaps_late: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        found = elements_of(flat, groups)
        pairs = pairs_of(found.keys, codes_of(flat.keys)[found.places])
        taken_as_is = _of_first_map(flat, groups)[found.rows]
        items = flat.items
        is_null = ~np.asarray(items.is_valid())[found.places]
        times = pc.struct_field(items, [self.time_member])
        has_time = np.asarray(times.is_valid())[found.places] & ~is_null
        # Only entries after the last removal of their key count.
        removed = np.full(len(pairs.first), -1, np.int64)
        removing = np.flatnonzero(is_null & ~taken_as_is)
        removed[pairs.of[removing]] = removing
        alive = np.arange(len(found.keys)) > removed[pairs.of]
        winners = _earliest_of_newest(
            np.flatnonzero(alive & has_time), sort_words(times)[found.places], pairs.of
        )
        # Entries of the first map without a time are kept until an entry with a time arrives.
        untimed = np.flatnonzero(alive & taken_as_is & ~has_time)
        chosen = np.full(len(pairs.first), -1, np.int64)
        chosen[pairs.of[untimed]] = untimed
        chosen[pairs.of[winners]] = winners
        kept = chosen[chosen >= 0]
        kept = kept[np.argsort(found.keys[kept], kind="stable")]
        places = pa.array(found.places[kept])
        has = has_value(is_valid(flat), groups)
        return maps_of(flat.keys.take(places), items.take(places), found.keys[kept], has, flat.type)


def _of_first_map(maps: pa.Array, groups: KeyGroups) -> Mask:
    """Return a mask, in merge order, of the rows that have the first non-null map of their key."""
    valid = np.flatnonzero(np.asarray(maps.is_valid())[groups.order])
    first = np.full(len(groups), -1, np.int64)
    first[groups.key_of[valid[::-1]]] = valid[::-1]
    marked = np.zeros(len(groups.order), bool)
    marked[first[first >= 0]] = True
    return marked


def _earliest_of_newest(entries: Positions, times: Positions, pairs: Positions) -> Positions:
    """Return, for each pair of key and map key, the first of the entries with the largest time.

    An entry with an equal time does not replace an earlier one.
    """
    order = np.lexsort((-entries, times[entries], pairs[entries]))
    ordered = entries[order]
    is_last = np.ones(len(ordered), bool)
    is_last[:-1] = pairs[ordered[1:]] != pairs[ordered[:-1]]
    return ordered[is_last]
