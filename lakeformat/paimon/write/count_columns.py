"""Columns of the aggregate function ``count``: a written value becomes 1, a null becomes 0."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.aggregate_rules import counted_columns
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.types.types import DataField

__all__ = ["input_columns_of"]


def input_columns_of(schema: TableSchema) -> InputColumns:
    """Return the converter of rows to the columns of a table."""
    counted = counted_columns(schema)
    return _Counting(schema.fields, counted) if counted else InputColumns(schema.fields)


class _Counting(InputColumns):
    """Replaces values by counts before any merge, because merges add up stored counts."""

    def __init__(self, fields: tuple[DataField, ...], counted: Sequence[str]) -> None:
        super().__init__(fields)
        self._counted = counted

    def __call__(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        return self._as_counts(super().__call__(batch, first_row))

    def again(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        return self._as_counts(super().again(batch, first_row))

    def _as_counts(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for name in self._counted:
            position = rows.schema.get_field_index(name)
            field = rows.schema.field(position)
            ones = pc.is_valid(rows.column(position)).cast(field.type)
            rows = rows.set_column(position, field, ones)
        return rows
