# SPDX-License-Identifier: Apache-2.0
"""``nested_partial_update``: a nested table whose elements are updated member by member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.elements import lists_of, pairs_of
from lakeformat.paimon.merge.functions.folding import Folding
from lakeformat.paimon.merge.functions.function import Accumulator, Column
from lakeformat.paimon.merge.functions.nested import NestedKey, present_elements
from lakeformat.paimon.merge.functions.number_states import has_value
from lakeformat.paimon.merge.functions.segments import combined, is_valid, take_or_null
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["NestedPartialUpdateFunction"]


@dataclass(frozen=True, slots=True)
class NestedPartialUpdateFunction:
    """Merges elements by their nested key; each member keeps its last non-null value."""

    name: str
    column: str
    key: NestedKey
    keeps_single: bool = False
    swaps_late: bool = True

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return Folding(self, values, keys)

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        flat = combined(values)
        rows = flat.values
        found = self.key.accepted(rows, present_elements(flat, groups), groups)
        pairs = pairs_of(found.keys, self.key.codes(rows)[found.places])
        fields = list(rows.type)
        members = [
            _last_non_null(pc.struct_field(rows, [i]), found.places, pairs.of, len(pairs.first))
            for i in range(len(fields))
        ]
        elements = pa.StructArray.from_arrays(members, fields=fields)
        has = has_value(is_valid(flat), groups)
        return lists_of(elements, found.keys[pairs.first], has, flat.type)


def _last_non_null(member: pa.Array, places: Positions, pairs: Positions, count: int) -> pa.Array:
    newest = np.full(count, -1, np.int64)
    present = np.flatnonzero(np.asarray(member.is_valid())[places])
    # Of several assignments to one pair, numpy keeps the last.
    newest[pairs[present]] = places[present]
    return take_or_null(member, newest)
