# SPDX-License-Identifier: Apache-2.0
"""New values of an UPDATE: one value for all rows, or values computed from each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.conditions.literals import has_literals, literal_of
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted
from lakeformat.types.types import DataField

__all__ = ["Assignments", "Conform", "NewValue", "NewValues", "bind_assignments"]

NewValue: TypeAlias = "Any | Callable[[pa.RecordBatch], Any]"
"""The new value of a column for all rows, or a function that computes a value for each row from the
rows before the UPDATE.
"""
NewValues: TypeAlias = Mapping[str, NewValue]
Conform: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
"""A function that returns a batch with the types of the table's columns.

It raises InvalidRequestError for a value that does not fit.
"""


@dataclass(frozen=True, slots=True)
class Assignments:
    """The new values that an UPDATE gives to columns of a table, checked against their types."""

    values: Mapping[str, pa.Scalar | Callable[[pa.RecordBatch], Any]]
    conform: Conform

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with their new values, each computed from the row before the UPDATE.

        Raise InvalidRequestError for a computed value that does not fit its column.
        """
        new = {name: _column(name, value, rows) for name, value in self.values.items()}
        checked = self.conform(pa.RecordBatch.from_pydict(new))
        for name in self.values:
            position = rows.schema.get_field_index(name)
            rows = rows.set_column(position, rows.schema.field(position), checked.column(name))
        return rows


def bind_assignments(
    fields: Sequence[DataField],
    given: NewValues | None,
    conform: Callable[[Sequence[str]], Conform],
) -> Assignments:
    """Return the assignments of an UPDATE.

    Before any row is read, raise InvalidRequestError if ``given`` is empty, names an unknown
    column, or has a constant that does not fit its column. ``conform`` takes the names of columns,
    and returns a function that checks batches with these columns.
    """
    by_name = {field.name: field for field in fields}
    asked: object = given
    if given is None or not isinstance(asked, Mapping) or not asked:
        raise InvalidRequestError(
            "set must map columns to values, as in {'price': 1}; the columns are "
            f"{', '.join(by_name)}; got {given!r}"
        )
    for name in given:
        if name not in by_name:
            raise InvalidRequestError(
                f"'set' names {name!r}, which is not a column; the columns are "
                f"{', '.join(by_name)}{closest(name, by_name)}"
            )
    values = {
        name: value if callable(value) else _literal(value, by_name[name])
        for name, value in given.items()
    }
    constants = {name: value for name, value in values.items() if isinstance(value, pa.Scalar)}
    conform([*constants])(
        pa.RecordBatch.from_pydict({name: pa.repeat(v, 1) for name, v in constants.items()})
    )
    return Assignments(values, conform([*values]))


def _literal(value: Any, field: DataField) -> pa.Scalar:
    if has_literals(field.type):
        return literal_of(value, field)
    try:
        kind = to_arrow_type(field.type)
        return value.cast(kind) if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError) as reason:
        raise InvalidRequestError(
            f"{value!r} is not a value of column {field.name!r}: {reason}"
        ) from None


def _column(name: str, value: Any, rows: pa.RecordBatch) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows.num_rows)
    found = value(rows)
    if isinstance(found, pa.Scalar):
        return pa.repeat(found, rows.num_rows)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array) or len(found) != rows.num_rows:
        had = counted(len(found), "value") if isinstance(found, pa.Array) else repr(found)[:100]
        raise InvalidRequestError(
            f"the function for column {name!r} was called with {counted(rows.num_rows, 'row')} and "
            f"returned {had}: return an Arrow array with a value for each row, or one scalar"
        )
    return found
