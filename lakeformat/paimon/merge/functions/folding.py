# SPDX-License-Identifier: Apache-2.0
"""The state of functions that join values, such as ``collect``, instead of choosing one value.

``add`` only records a value. All recorded values are joined at once: at the end, or before another
operation on a key that has recorded values. So a merge that has only adds needs one reduction.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.function import AggregateFunction, Column
from lakeformat.paimon.merge.functions.positions import refuse_retract
from lakeformat.paimon.merge.functions.segments import combined, is_valid
from lakeformat.rows.groups import KeyGroups, Positions

__all__ = ["Folding", "JoiningFunction", "Subtracting"]


class JoiningFunction(AggregateFunction, Protocol):
    """An aggregate function that joins values, such as ``collect``."""

    @property
    def column(self) -> str:
        """The name of the column, for error messages."""
        ...

    @property
    def swaps_late(self) -> bool:
        """True if a value older than the key's state is joined in front of the state, not behind
        it.
        """
        ...


class Subtracting(Protocol):
    """An aggregate function that can subtract a retracted value."""

    def subtract(self, states: pa.Array, values: pa.Array) -> pa.Array:
        """Return ``states``, each minus the value at the same position; neither array has nulls."""
        ...


_NOTHING = -1


class Folding:
    """The aggregated value of each key, stored as the number of an array and a position in that
    array.

    Array 0 is the column itself; each join adds an array with its results.
    """

    def __init__(
        self,
        function: JoiningFunction,
        values: Column,
        keys: int,
        subtracting: Subtracting | None = None,
        *,
        ignores_null: bool = True,
    ) -> None:
        """Start with null for each key; if ``ignores_null``, adding a null leaves the value of a
        key unchanged.
        """
        self._function, self._subtracting = function, subtracting
        self._pieces = [combined(values)]
        self._piece = np.zeros(keys, np.int64)
        self._place = np.full(keys, _NOTHING, np.int64)
        self._valid = is_valid(self._pieces[0]) if ignores_null else None
        self._noted: list[tuple[Positions, Positions]] = []
        self._is_noted = np.zeros(keys, bool)

    def add(self, keys: Positions, rows: Positions) -> None:
        if self._valid is not None:
            valid = self._valid[rows]
            keys, rows = keys[valid], rows[valid]
        self._noted.append((keys, rows))
        self._is_noted[keys] = True

    def add_late(self, keys: Positions, rows: Positions) -> None:
        if not self._function.swaps_late:
            self.add(keys, rows)
            return
        self._settle(keys)
        states = self._states(keys)
        # A null state has no values to join, so it becomes the late value.
        has_state = np.asarray(states.is_valid())
        self.reset(keys[~has_state], rows[~has_state])
        keys, rows = keys[has_state], rows[has_state]
        count = len(keys)
        both = pa.concat_arrays([self._taken(rows), self._states(keys)])
        pairs = np.stack([np.arange(count), count + np.arange(count)], axis=1).ravel()
        self._put(keys, self._joined(both, KeyGroups(pairs, 2 * np.arange(count))))

    def retract(self, keys: Positions, rows: Positions) -> None:
        if self._subtracting is None:
            refuse_retract(self._function.name, self._function.column, rows)
            return
        self._settle(keys)
        states, values = self._states(keys), self._taken(rows)
        both = np.asarray(states.is_valid()) & np.asarray(values.is_valid())
        which = pa.array(np.flatnonzero(both))
        if len(which):
            rest = self._subtracting.subtract(states.take(which), values.take(which))
            self._put(keys[both], rest)

    def reset(self, keys: Positions, rows: Positions) -> None:
        self._settle(keys)
        self._piece[keys] = 0
        self._place[keys] = rows

    def clear(self, keys: Positions) -> None:
        self._settle(keys)
        self._place[keys] = _NOTHING

    def result(self) -> pa.Array:
        everything = np.arange(len(self._place))
        self._settle(everything)
        return self._states(everything)

    def _settle(self, keys: Positions) -> None:
        """Join all recorded adds if at least one of them belongs to one of ``keys``."""
        if not self._is_noted[keys].any():
            return
        noted_keys = np.concatenate([keys for keys, _ in self._noted])
        noted_rows = np.concatenate([rows for _, rows in self._noted])
        self._noted.clear()
        self._is_noted[noted_keys] = False
        having = np.unique(noted_keys)
        # The state of each key first, then its rows in the order they arrived.
        values = pa.concat_arrays([self._states(having), self._taken(noted_rows)])
        owners = np.concatenate([having, noted_keys])
        order = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[order], having)
        self._put(having, self._joined(values, KeyGroups(order, starts)))

    def _joined(self, values: pa.Array, groups: KeyGroups) -> pa.Array:
        """Join the values of each key; if the result is null, keep the first value."""
        states = self._function.reduce(values, groups)
        if not states.null_count:
            return states
        first = values.take(pa.array(groups.order[groups.starts]))
        is_kept = pc.and_(pc.is_null(states), pc.is_valid(first))
        return pc.if_else(is_kept, first, states) if pc.any(is_kept).as_py() else states

    def _put(self, keys: Positions, states: pa.Array) -> None:
        self._piece[keys] = len(self._pieces)
        self._place[keys] = np.arange(len(keys))
        self._pieces.append(states)

    def _taken(self, rows: Positions) -> pa.Array:
        return self._pieces[0].take(pa.array(rows))

    def _states(self, keys: Positions) -> pa.Array:
        pieces, places = self._piece[keys], self._place[keys]
        order = np.argsort(pieces, kind="stable")
        parts = []
        for piece in np.unique(pieces).tolist():
            of_piece = places[order][pieces[order] == piece]
            parts.append(self._pieces[piece].take(pa.array(of_piece, mask=of_piece == _NOTHING)))
        if not parts:
            return self._pieces[0].slice(0, 0)
        back = np.empty(len(keys), np.int64)
        back[order] = np.arange(len(keys))
        return pa.concat_arrays(parts).take(pa.array(back))
