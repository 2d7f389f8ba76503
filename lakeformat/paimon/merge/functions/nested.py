# SPDX-License-Identifier: Apache-2.0
"""Nested tables, which are arrays of rows: their elements, and the ``nested-key`` of elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.elements import Elements, codes_of, elements_of
from lakeformat.paimon.merge.functions.function import RefusedRow
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["NestedKey", "present_elements"]


@dataclass(frozen=True, slots=True)
class NestedKey:
    """The options ``nested-key`` (the fields that identify an element) and
    ``nested-key-null-strategy``.
    """

    column: str
    members: tuple[str, ...]
    null_strategy: str

    def codes(self, rows: pa.Array) -> Positions:
        """Return a number for each element; elements with equal nested keys have equal numbers."""
        return codes_of(pa.StructArray.from_arrays(self._members(rows), names=self.members))

    def accepted(self, rows: pa.Array, found: Elements, groups: KeyGroups) -> Elements:
        """Return the elements of ``found`` that ``null_strategy`` accepts.

        The strategy ``ignore`` drops elements with a null in their nested key, ``merge`` keeps
        them, and ``error`` raises RefusedRow.
        """
        if self.null_strategy == "merge":
            return found
        is_null = np.zeros(len(rows), bool)
        for member in self._members(rows):
            is_null |= np.asarray(member.is_null())
        wrong = is_null[found.places]
        if self.null_strategy == "error" and wrong.any():
            raise RefusedRow(
                f"column {self.column!r} has an element whose nested key "
                f"({', '.join(self.members)}) has a null; correct the row, or set "
                f"'fields.{self.column}.nested-key-null-strategy' to 'ignore' or 'merge'",
                int(groups.order[found.rows[np.flatnonzero(wrong)[0]]]),
            )
        return chosen(found, np.flatnonzero(~wrong))

    def _members(self, rows: pa.Array) -> list[pa.Array]:
        return [pc.struct_field(rows, [member]) for member in self.members]


def present_elements(values: pa.Array, groups: KeyGroups) -> Elements:
    """Return the elements of the arrays in ``values``, except null elements."""
    found = elements_of(values, groups)
    if values.values.null_count == 0:
        return found
    is_valid = np.asarray(values.values.is_valid())
    return chosen(found, np.flatnonzero(is_valid[found.places]))


def chosen(found: Elements, which: Positions) -> Elements:
    """Return the elements at the positions ``which``."""
    return Elements(found.keys[which], found.rows[which], found.places[which])
