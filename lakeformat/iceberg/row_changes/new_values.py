# SPDX-License-Identifier: Apache-2.0
"""Applies the new values of an UPDATE to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.file_rows import LAST_UPDATED
from lakeformat.iceberg.read.where import uuid_bytes
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.write.given_rows import GivenRows
from lakeformat.rows.assignments import Assignments, Conform, NewValues, bind_assignments

__all__ = ["Update", "bind_update"]


@dataclass(frozen=True, slots=True)
class Update:
    """Returns rows with new values; columns of row lineage may follow the table columns."""

    columns: int
    """The number of table columns; columns of row lineage follow them."""
    assignments: Assignments

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with new values.

        A row keeps its row id. The sequence number of its last update becomes null, which stands
        for the sequence number of this commit.
        """
        own = rows.select(range(self.columns))
        found = self.assignments(own)
        for place in range(self.columns, rows.num_columns):
            field, column = rows.schema.field(place), rows.column(place)
            if field.name == LAST_UPDATED.name:
                column = pa.nulls(len(column), field.type)
            found = found.append_column(field, column)
        return found


def bind_update(schema: Schema, given: NewValues | None) -> Update:
    """Return the update that sets the values ``given``.

    Raise ``InvalidRequestError`` if ``given`` is empty, for an unknown column, or for a constant
    that does not fit its column. The results of functions are checked later, when rows are updated.
    """

    def conform(names: Sequence[str]) -> Conform:
        chosen = tuple(each for name in names for each in schema.fields if each.name == name)
        check = GivenRows(replace(schema, fields=chosen, identifier_field_ids=()))
        return lambda batch: check(batch, range(batch.num_rows))

    values: Any = given
    if isinstance(values, Mapping):
        values = {name: uuid_bytes(schema, name, value) for name, value in values.items()}
    return Update(len(schema.fields), bind_assignments(condition_fields(schema), values, conform))
