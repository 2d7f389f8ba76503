# SPDX-License-Identifier: Apache-2.0
"""Merges adds (+I, +U) and retracts (-U, -D) of all keys at once: the first row of each key, then
the second, and so on.

A column that is not aggregated gets its value from one row of the key. So only the position of this
row is kept, once for all columns that change together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.merge.functions.function import Accumulator, RefusedRow
from lakeformat.paimon.merge.key_text import key_text
from lakeformat.paimon.merge.partial_update_newest import NOWHERE
from lakeformat.paimon.merge.partial_update_rules import PartialUpdateRules
from lakeformat.paimon.merge.partial_update_sequence import NEVER, Sequences
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.row_kinds import DELETE, INSERT, is_retract

__all__ = ["RowByRow", "refuse_nulls"]


class RowByRow:
    """The merged state of several keys, one slot per key; keys with more rows have lower slots."""

    def __init__(
        self,
        rules: PartialUpdateRules,
        rows: pa.Table,
        *,
        kinds: npt.NDArray[np.int8],
        validity: Mapping[str, Mask],
        sequences: Sequence[Sequences],
        slots: int,
    ) -> None:
        """Start with empty states.

        ``validity`` has a mask of the non-null values for each column that has nulls and is in no
        sequence group; ``sequences`` has the sequences of each group.
        """
        self._rules, self._rows, self._kinds = rules, rows, kinds
        self._validity, self._sequences = validity, sequences
        self._is_filled = np.zeros(slots, dtype=bool)
        self._has_added = np.zeros(slots, dtype=bool)
        self._is_deleted = np.zeros(slots, dtype=bool)
        self.last = np.full(slots, NOWHERE)
        """For each slot, the position of the last row that was not ignored.

        If all rows of a key were ignored, ``run`` sets the position of its newest row.
        """
        self._newest_add = np.full(slots, NOWHERE)
        self._values = {name: np.full(slots, NOWHERE) for name in validity}
        self._reached = [np.full(slots, NEVER) for _ in rules.groups]
        self._sequence_rows = [np.full(slots, NOWHERE) for _ in rules.groups]
        self._protected_rows = [np.full(slots, NOWHERE) for _ in rules.groups]
        self._aggregated: list[dict[str, Accumulator]] = [
            {
                name: rules.functions[name].accumulator(rows[name], slots)
                for name in group.protected
                if name in rules.functions and name in rows.column_names
            }
            for group in rules.groups
        ]

    def run(self, groups: KeyGroups, keys: Positions) -> None:
        """Merge the rows of ``keys``; ``keys[i]`` uses slot i.

        Keys with more rows must be first. Raise InvalidRequestError for a row that the engine or a
        function of a column cannot apply.
        """
        sizes, starts = groups.sizes[keys], groups.starts[keys]
        for number in range(int(sizes[0])):
            active = int(np.searchsorted(-sizes, -number, side="left"))
            try:
                self._step(np.arange(active), groups.order[starts[:active] + number])
            except RefusedRow as refused:
                where = self._key(refused.row)
                raise InvalidRequestError(f"{where}, {refused.reason}") from refused
        self.last = np.where(self.last == NOWHERE, groups.newest[keys], self.last)

    # ------------------------------------------------------------------ the result

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        """Return the row kind of each slot.

        It is DELETE if the last row removed the key, or if the key got no add; otherwise INSERT.
        """
        return np.where(self._is_deleted | ~self._has_added, DELETE, INSERT).astype(np.int8)

    def positions(self, name: str) -> Positions:
        """Return, for each slot, the position of the row whose value the column ``name`` gets.

        The position is ``NOWHERE`` if the value is null.
        """
        number = self._rules.group_of.get(name)
        if number is None:
            return self._values.get(name, self._newest_add)
        if name in self._rules.groups[number].sequence:
            return self._sequence_rows[number]
        return self._protected_rows[number]

    def aggregated(self) -> Iterator[tuple[str, pa.Array]]:
        """Yield the name of each aggregated column, and its value in each slot."""
        for accumulators in self._aggregated:
            for name, accumulator in accumulators.items():
                yield name, accumulator.result()

    # ------------------------------------------------------------------ one row of each key

    def _step(self, slots: Positions, rows: Positions) -> None:
        self._is_deleted[slots] = False
        retracts = is_retract(self._kinds[rows])
        if retracts.any():
            self._retract(slots[retracts], rows[retracts])
            slots, rows = slots[~retracts], rows[~retracts]
        self._add(slots, rows)

    def _add(self, slots: Positions, rows: Positions) -> None:
        self._is_filled[slots] = self._has_added[slots] = True
        self.last[slots] = self._newest_add[slots] = rows
        if not self._rules.groups:
            refuse_nulls(self._rules, self._rows, lambda: rows)
        for name, valid in self._validity.items():
            is_valid = valid[rows]
            self._values[name][slots[is_valid]] = rows[is_valid]
        for number in range(len(self._rules.groups)):
            present, late = self._compare(number, slots, rows)
            newer = present & ~late
            self._move(number, slots[newer], rows[newer], rows[newer])
            for accumulator in self._aggregated[number].values():
                accumulator.add(slots[newer], rows[newer])
                if late.any():
                    accumulator.add_late(slots[late], rows[late])

    def _retract(self, slots: Positions, rows: Positions) -> None:
        fresh = ~self._is_filled[slots]
        self._fill(slots[fresh], rows[fresh])
        if self._rules.ignore_delete:
            return
        self.last[slots] = rows
        if self._rules.groups:
            self._retract_in_groups(slots, rows)
        elif self._rules.remove_on_delete:
            removes = self._kinds[rows] == DELETE
            self._remove(slots[removes], rows[removes])
        elif len(rows):
            raise InvalidRequestError(
                "merge engine 'partial-update' takes no rows of the kinds -D and -U in this table, "
                f"but a row of {self._key(int(rows[0]))} has one of them; to ignore such rows, set "
                "the table option 'ignore-delete' to 'true'. To delete rows, create the table with "
                "'partial-update.remove-record-on-delete' = 'true', or with sequence groups and "
                "'partial-update.remove-record-on-sequence-group'"
            )

    def _retract_in_groups(self, slots: Positions, rows: Positions) -> None:
        compared = [self._compare(number, slots, rows) for number in range(len(self._rules.groups))]
        ends = self._removal_places(compared, self._kinds[rows] == DELETE)
        for number, (present, late) in enumerate(compared):
            for name, accumulator in self._aggregated[number].items():
                taken = present & (self._rules.place_of[name] < ends)
                accumulator.retract(slots[taken], rows[taken])
            newer = present & ~late
            self._move(number, slots[newer], rows[newer], np.full(int(newer.sum()), NOWHERE))
        removed = ends < len(self._rules.columns)
        self._remove(slots[removed], rows[removed])

    def _removal_places(self, compared: Sequence[tuple[Mask, Mask]], deletes: Mask) -> Positions:
        """Return, for each row, the position of the column at which its processing stops.

        A delete that removes its key stops at the leftmost sequence column of the groups that cause
        the removal. Any other row is processed for all columns, so its position is the number of
        columns.
        """
        places = np.full(len(deletes), len(self._rules.columns))
        for group, (present, late) in zip(self._rules.groups, compared, strict=True):
            if self._rules.removes(group):
                place = min(self._rules.place_of[name] for name in group.sequence)
                found = deletes & present & ~late
                places[found] = np.minimum(places[found], place)
        return places

    def _key(self, row: int) -> str:
        return key_text(self._rows, self._rules.keys, row)

    # ------------------------------------------------------------------ the state

    def _compare(self, number: int, slots: Positions, rows: Positions) -> tuple[Mask, Mask]:
        """Return two masks of ``rows`` for the sequence group ``number``.

        The first marks rows that have a sequence in the group. Of these rows, the second marks
        those whose sequence is older than the sequence of their slot.
        """
        present = self._sequences[number].present[rows]
        late = present & (self._sequences[number].numbers[rows] < self._reached[number][slots])
        return present, late

    def _move(self, number: int, slots: Positions, rows: Positions, protected: Positions) -> None:
        """Set the sequence of the group ``number`` in ``slots`` to the sequence of ``rows``.

        The columns that the group protects get their values from the rows ``protected``, unless
        the columns are aggregated. ``NOWHERE`` in ``protected`` sets them to null.
        """
        self._reached[number][slots] = self._sequences[number].numbers[rows]
        self._sequence_rows[number][slots] = rows
        self._protected_rows[number][slots] = protected

    def _fill(self, slots: Positions, rows: Positions) -> None:
        """Set every column of ``slots`` to the values of ``rows``, which are retracts."""
        if not len(slots):
            return
        refuse_nulls(self._rules, self._rows, lambda: rows)
        self._is_filled[slots] = True
        self._newest_add[slots] = rows
        for positions in self._values.values():
            positions[slots] = rows
        for number, accumulators in enumerate(self._aggregated):
            self._move(number, slots, rows, rows)
            for accumulator in accumulators.values():
                accumulator.reset(slots, rows)

    def _remove(self, slots: Positions, rows: Positions) -> None:
        """Mark the keys of ``slots`` as deleted; later adds start from the values of
        ``rows``.
        """
        self._is_deleted[slots] = True
        self._fill(slots, rows)


def refuse_nulls(rules: PartialUpdateRules, rows: pa.Table, taken: Callable[[], Positions]) -> None:
    """Raise InvalidRequestError if a NOT NULL column is null in a row that is merged with another
    row.

    ``taken`` returns the positions of the merged rows.
    """
    for name in rules.columns:
        if name not in rules.not_null or name not in rows.column_names:
            continue
        if not rows[name].null_count:
            continue
        looked_at = taken()
        nulls = looked_at[pc.is_null(rows[name]).to_numpy()[looked_at]]
        if len(nulls):
            raise InvalidRequestError(
                f"column {name!r} is NOT NULL, but a row of "
                f"{key_text(rows, rules.keys, int(nulls[0]))} has a null there, and merge engine "
                "'partial-update' has to merge this row with another one; give the column a value "
                "in every row, also in deletes, or make the column nullable"
            )
