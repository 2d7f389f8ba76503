# SPDX-License-Identifier: Apache-2.0
"""Option ``ignore-retract``: deletes and update-befores do not change the state of a function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.paimon.merge.functions.function import Accumulator, AggregateFunction, Column
from lakeformat.paimon.merge.functions.segments import take_or_null
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = ["IgnoreRetract"]


@dataclass(frozen=True, slots=True)
class IgnoreRetract:
    """Wraps a function and drops retracts before they reach it."""

    function: AggregateFunction

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def keeps_single(self) -> bool:
        return self.function.keeps_single

    def accumulator(self, values: Column, keys: int) -> Accumulator:
        return _WithoutRetract(self.function.accumulator(values, keys))

    def reduce(self, values: Column, groups: KeyGroups) -> pa.Array:
        return self.function.reduce(values, groups)

    def reduce_changes(self, values: Column, groups: KeyGroups, retracts: Mask) -> pa.Array:
        adds = np.flatnonzero(~retracts[groups.order])
        counts = np.bincount(groups.key_of[adds], minlength=len(groups))
        having = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[having]
        reduced = self.function.reduce(values, KeyGroups(groups.order[adds], starts))
        places = np.full(len(groups), -1, np.int64)
        places[having] = np.arange(len(having))
        return take_or_null(reduced, places)


@dataclass(frozen=True, slots=True)
class _WithoutRetract:
    state: Accumulator

    def add(self, keys: Positions, rows: Positions) -> None:
        self.state.add(keys, rows)

    def add_late(self, keys: Positions, rows: Positions) -> None:
        self.state.add_late(keys, rows)

    def retract(self, keys: Positions, rows: Positions) -> None:
        pass

    def reset(self, keys: Positions, rows: Positions) -> None:
        self.state.reset(keys, rows)

    def clear(self, keys: Positions) -> None:
        self.state.clear(keys)

    def result(self) -> pa.Array:
        return self.state.result()
