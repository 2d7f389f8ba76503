"""Rows that are looked at before they are written, for callers who number them in their own way."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.row_kinds import RowKinds, written_rows

__all__ = ["CheckedRows"]


class CheckedRows:
    """Batches of one source, in the table's columns, with the kinds that are given beside them.

    A writer asks the same again of what comes out, where each column has its type already.
    """

    def __init__(
        self,
        schema: TableSchema,
        kinds: str | None,
        *,
        first_row: int,
        encoded: Collection[str] = (),
    ) -> None:
        """``kinds`` names a column; ``first_row`` is what the first row is called in an error.

        Columns that are ``encoded`` may be numbers: texts and decimals.
        """
        self._schema = schema
        self._conform = InputColumns(schema.fields, encoded)
        self._kinds = RowKinds(schema, kinds)
        self._column = kinds
        self._next = first_row

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The next rows, or an error that names the first one the table cannot take."""
        given, kinds = self._kinds.split(batch)
        rows = self._conform(given, self._next)
        written_rows(self._schema, self._kinds.read(rows, kinds, self._next), self._next)
        self._next += rows.num_rows
        if self._column is None or self._column in rows.schema.names:
            return rows
        return rows.append_column(self._column, kinds)
