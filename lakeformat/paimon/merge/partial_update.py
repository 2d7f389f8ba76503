# SPDX-License-Identifier: Apache-2.0
"""Engine ``partial-update``: a null keeps the value of the older row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.merge.partial_update_newest import NOWHERE, newest_by_sequence, newest_valid
from lakeformat.paimon.merge.partial_update_ranks import RowByRow, refuse_nulls
from lakeformat.paimon.merge.partial_update_rules import PartialUpdateRules
from lakeformat.paimon.merge.partial_update_sequence import read_sequences
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.row_kinds import INSERT, is_retract
from lakeformat.rows.take_rows import take_rows

__all__ = ["PartialUpdate"]


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """Takes each column from the newest row in which it is not null.

    A column of a sequence group is aggregated, or taken from the row with the largest sequence.
    """

    rules: PartialUpdateRules

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``, followed by the columns that must be read to merge them.

        The added columns are the sequence columns of each group that has one of ``columns``, and of
        each group in which a delete removes the row.
        """
        wanted = set(columns)
        for group in self.rules.groups:
            followers = {*group.sequence, *group.protected}
            if self.rules.removes(group) or not followers.isdisjoint(columns):
                wanted.update(group.sequence)
        more = [name for name in self.rules.columns if name in wanted.difference(columns)]
        return (*columns, *more)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        if not groups.meets.any():
            return take_rows(rows, groups.order)
        return _PartialUpdate(self.rules, rows, groups).result()


class _PartialUpdate:
    """The merge of one table of rows.

    A unit is a list of columns that take their values from the same source row of a key.
    """

    def __init__(self, rules: PartialUpdateRules, rows: pa.Table, groups: KeyGroups) -> None:
        self._rules, self._rows, self._groups = rules, rows, groups
        self._kinds = rows[VALUE_KIND.name].to_numpy()
        self._newest = groups.newest
        self._meets = groups.meets
        self._validity = dict(_validity(rules, rows))
        self._sequences = [read_sequences(rows, group.sequence) for group in rules.groups]

    def result(self) -> pa.Table:
        keys = self._keys_by_row()
        columns = self._units()
        positions = self._of_adds(columns, keys)
        kinds = np.where(self._meets, INSERT, self._kinds[self._newest]).astype(np.int8)
        values: dict[str, pa.Array | pa.ChunkedArray] = {}
        if len(keys):
            merged = self._by_row(keys)
            for unit, names in columns.items():
                positions[unit][keys] = merged.last if unit == _LAST else merged.positions(names[0])
            kinds[keys] = merged.kinds
            values = {name: self._among(keys, name, of) for name, of in merged.aggregated()}
        values[VALUE_KIND.name] = pa.array(kinds)
        for unit, names in columns.items():
            wanted = [name for name in names if name not in values]
            if wanted:
                indices = _indices(positions[unit])
                values.update((name, _take(self._rows[name], indices)) for name in wanted)
        schema = self._rows.schema
        return pa.table([values[name] for name in schema.names], schema=schema)

    def _units(self) -> dict[str, list[str]]:
        units: dict[str, list[str]] = {}
        for name in self._rows.column_names:
            if name != VALUE_KIND.name:
                units.setdefault(self._unit(name), []).append(name)
        return units

    def _unit(self, name: str) -> str:
        if name == SEQUENCE_NUMBER.name:
            return _LAST
        number = self._rules.group_of.get(name)
        if number is None:
            return f"column {name}" if name in self._validity else "never null"
        is_sequence = name in self._rules.groups[number].sequence
        return f"sequence of {number}" if is_sequence else f"protected by {number}"

    def _keys_by_row(self) -> Positions:
        """Return the keys that need a row-by-row merge, those with the most rows first."""
        if not self._rules.functions.keys().isdisjoint(self._rows.column_names):
            wanted = self._meets
        else:
            retracts = is_retract(self._kinds)
            if not retracts.any():
                return np.zeros(0, dtype=np.int64)
            found = np.logical_or.reduceat(retracts[self._groups.order], self._groups.starts)
            wanted = self._meets & found
        keys = np.flatnonzero(wanted)
        return keys[np.argsort(-self._groups.sizes[keys], kind="stable")]

    def _by_row(self, keys: Positions) -> RowByRow:
        merged = RowByRow(
            self._rules,
            self._rows,
            kinds=self._kinds,
            validity=self._validity,
            sequences=self._sequences,
            slots=len(keys),
        )
        merged.run(self._groups, keys)
        return merged

    def _of_adds(self, columns: Mapping[str, Sequence[str]], others: Positions) -> _Sources:
        """Return, for each unit, the source row of each key.

        The second argument has the keys that are merged row by row. In the result, the source rows
        of these keys are arbitrary: the caller overwrites them.
        """
        is_added = self._meets.copy()
        is_added[others] = False
        if not is_added.any():
            return {unit: self._newest.copy() for unit in columns}
        if not self._rules.groups:
            refuse_nulls(
                self._rules, self._rows, lambda: self._groups.order[is_added[self._groups.key_of]]
            )
        valid = newest_valid(self._validity, self._groups, self._newest)
        by_sequence = [
            np.where(self._meets, newest_by_sequence(sequences, self._groups), self._newest)
            for sequences in self._sequences
        ]
        found: _Sources = {}
        for unit, (name, *_) in columns.items():
            number = self._rules.group_of.get(name)
            source = valid.get(name, self._newest) if number is None else by_sequence[number]
            found[unit] = source.copy() if len(others) else source
        return found

    def _among(self, keys: Positions, name: str, values: pa.Array) -> pa.ChunkedArray:
        """Return the column ``name`` with one value per key.

        The keys ``keys`` get ``values``. Each other key gets the value of its newest row.
        """
        column = self._rows[name]
        is_other = np.ones(len(self._groups), dtype=bool)
        is_other[keys] = False
        kept = column.take(pa.array(self._newest[is_other]))
        places = np.empty(len(self._groups), dtype=np.int64)
        places[keys] = np.arange(len(keys))
        places[is_other] = len(keys) + np.arange(len(kept))
        pool = pa.chunked_array([values.cast(column.type), *kept.chunks], column.type)
        return pool.take(pa.array(places))


_Sources: TypeAlias = dict[str, Positions]

_LAST = "last row"
"""The name of the unit (see ``_PartialUpdate``) that has only the sequence number.

Its source row is the last row that was not ignored.
"""


def _validity(rules: PartialUpdateRules, rows: pa.Table) -> Iterator[tuple[str, Mask]]:
    """Yield, for each column with nulls and without a sequence group, its name and a mask of its
    non-null values.
    """
    for name in rules.columns:
        if name in rows.column_names and name not in rules.group_of and rows[name].null_count:
            yield name, pc.is_valid(rows[name]).to_numpy()


def _indices(positions: Positions) -> pa.Array:
    nowhere = positions == NOWHERE
    return pa.array(positions, mask=nowhere if nowhere.any() else None)


def _take(column: pa.ChunkedArray, indices: pa.Array) -> pa.Array | pa.ChunkedArray:
    # Arrow's take is twice as fast on a column in one piece.
    return (column.chunk(0) if column.num_chunks == 1 else column).take(indices)
