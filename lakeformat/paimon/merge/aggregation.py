# SPDX-License-Identifier: Apache-2.0
"""Engine ``aggregation``: a function for each column combines the rows of a key into one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.aggregate_rules import DEFAULT_FUNCTION
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.merge.functions.function import AggregateFunction, ReducesChanges, RefusedRow
from lakeformat.paimon.merge.functions.positions import PositionFunction
from lakeformat.paimon.merge.functions.registry import aggregate_function, kept_key
from lakeformat.paimon.merge.functions.segments import combined, of_keys, ranks_of
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.groups import KeyGroups, Mask, Positions
from lakeformat.rows.row_kinds import DELETE, INSERT, is_retract

__all__ = ["Aggregation"]

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Combines the rows of a key, column by column.

    Adds (+I, +U) are aggregated, and retracts (-U, -D) are subtracted. If a key has several rows,
    the merged row has the kind INSERT, or DELETE if the newest row is a DELETE and
    ``removes_on_delete`` is True.
    """

    keys: tuple[str, ...]
    """The primary-key columns, which error messages print."""
    functions: Mapping[str, AggregateFunction]
    removes_on_delete: bool = False
    """True if a DELETE removes the row; False if its values are subtracted."""

    @classmethod
    def of_schema(cls, schema: TableSchema) -> Aggregation:
        """Return the engine with the function that the table's options give each column.

        Raise InvalidRequestError if a function is unknown or does not fit its column, and
        UnsupportedError if the package of a function is not installed.
        """
        options = schema.table_options
        functions: dict[str, AggregateFunction] = {}
        sequence = {name.strip() for name in options.sequence_field}
        for field in schema.fields:
            if field.name in sequence:
                functions[field.name] = PositionFunction("last_value", field.name)
            # A key keeps its partition, so a partition column has one value, as key columns do.
            elif field.name in (*schema.primary_keys, *schema.partition_keys):
                functions[field.name] = kept_key(field.name)
            else:
                name = options.aggregate_function_of(field.name) or DEFAULT_FUNCTION
                functions[field.name] = aggregate_function(name, field, options)
        keys = tuple(field.name for field in schema.key_fields)
        return cls(keys, functions, options.remove_record_on_delete_of_aggregation)

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(columns)

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        return _Aggregation(self, rows, groups).result()


@dataclass(frozen=True)
class _Aggregation:
    """The merge of one table of rows.

    All keys with only adds are reduced together. All keys with retracts are reduced together if
    the function can reduce retracts and a DELETE does not remove the row. Otherwise, keys with
    retracts are merged row by row.
    """

    engine: Aggregation
    rows: pa.Table
    groups: KeyGroups

    def result(self) -> pa.Table:
        names = self.rows.column_names
        columns = [self._column(name) for name in names]
        return pa.Table.from_arrays(columns, schema=self.rows.schema)

    def _column(self, name: str) -> pa.Array | pa.ChunkedArray:
        values = self.rows[name]
        if name == SEQUENCE_NUMBER.name:
            return values.take(pa.array(self._newest))
        if name == VALUE_KIND.name:
            return pa.array(self._result_kinds, values.type)
        try:
            return self._aggregated(self.engine.functions[name], values)
        except RefusedRow as reason:
            raise InvalidRequestError(f"{self._where(reason.row)}{reason.reason}") from reason

    def _aggregated(self, function: AggregateFunction, values: pa.ChunkedArray) -> pa.Array:
        flat = combined(values)
        if not len(self._walked) and function.keeps_single:
            return function.reduce(flat, self.groups)
        reduced = function.reduce(flat, self._reduced_groups)
        parts = [flat, reduced]
        places = self._newest.copy()
        places[self._reduced] = len(flat) + np.arange(len(self._reduced))
        if len(self._walked):
            parts.append(self._walk(function, flat))
            places[self._walked] = len(flat) + len(reduced) + np.arange(len(self._walked))
        return pa.concat_arrays(parts).take(pa.array(places))

    def _walk(self, function: AggregateFunction, values: pa.Array) -> pa.Array:
        if isinstance(function, ReducesChanges) and not self.engine.removes_on_delete:
            return function.reduce_changes(values, self._walked_groups, self._retracts)
        state = function.accumulator(values, len(self._walked))
        for keys, rows, kinds in self._rounds:
            removing = (kinds == DELETE) & self.engine.removes_on_delete
            retracting = is_retract(kinds) & ~removing
            adding = ~(removing | retracting)
            state.add(keys[adding], rows[adding])
            if retracting.any():
                state.retract(keys[retracting], rows[retracting])
            if removing.any():
                state.reset(keys[removing], rows[removing])
        return state.result()

    @cached_property
    def _newest(self) -> Positions:
        return self.groups.newest

    @cached_property
    def _kinds(self) -> Kinds:
        kinds: Kinds = self.rows[VALUE_KIND.name].to_numpy()
        return kinds

    @cached_property
    def _retracts(self) -> Mask:
        return is_retract(self._kinds)

    @cached_property
    def _several(self) -> Mask:
        """Return a mask of the keys to merge.

        A key with a single row is not merged, except in a compaction that looks up older rows.
        """
        return self.groups.meets

    @cached_property
    def _walked(self) -> Positions:
        """Return the numbers of the keys to merge that have at least one retract."""
        if not self._retracts.any():
            return np.empty(0, np.int64)
        has_retract = np.zeros(len(self.groups), bool)
        has_retract[self.groups.key_of[self._retracts[self.groups.order]]] = True
        return np.flatnonzero(has_retract & self._several)

    @cached_property
    def _reduced(self) -> Positions:
        """Return the numbers of the keys to merge that have only adds."""
        is_reduced = self._several.copy()
        is_reduced[self._walked] = False
        return np.flatnonzero(is_reduced)

    @cached_property
    def _reduced_groups(self) -> KeyGroups:
        return of_keys(self.groups, self._reduced)

    @cached_property
    def _walked_groups(self) -> KeyGroups:
        return of_keys(self.groups, self._walked)

    @cached_property
    def _rounds(self) -> list[tuple[Positions, Positions, Kinds]]:
        return [(keys, rows, self._kinds[rows]) for keys, rows in ranks_of(self._walked_groups)]

    @cached_property
    def _result_kinds(self) -> Kinds:
        newest = self._kinds[self._newest]
        removed = (newest == DELETE) & self.engine.removes_on_delete
        # As in Java, a retract that was merged with another row becomes an insert.
        merged = np.where(removed, np.int8(DELETE), np.int8(INSERT))
        kinds: Kinds = np.where(self._several, merged, newest)
        return kinds

    def _where(self, row: int) -> str:
        known = [key for key in self.engine.keys if key in self.rows.column_names]
        shown = ", ".join(f"{key} = {self.rows[key][row].as_py()!r}" for key in known)
        return f"key {shown}, " if shown else ""
