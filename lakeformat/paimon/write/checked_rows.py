# SPDX-License-Identifier: Apache-2.0
"""Checks rows before a writer gets them; errors name rows by the row numbers of the caller."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa

from lakeformat.files.foreign.column_mapping import BY_NAME, ColumnMapping
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect
from lakeformat.files.foreign.plain_copy import Opener
from lakeformat.files.foreign.rows import naming, read_rows
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.row_kinds import RowKinds, written_rows

__all__ = ["CheckedRows", "checked_rows"]


class CheckedRows:
    """Checks the batches of one source, and converts them to the columns of the table.

    The writer checks the result again, which is fast: every column has its type already.
    """

    def __init__(
        self,
        schema: TableSchema,
        kinds: str | None,
        *,
        first_row: int,
        encoded: Collection[str] = (),
    ) -> None:
        """Check rows; in errors, the first row has the number ``first_row``.

        ``kinds`` names the column of row kinds. ``encoded`` is as in ``InputColumns``.
        """
        self._schema = schema
        self._conform = InputColumns(schema.fields, encoded)
        self._kinds = RowKinds(schema, kinds)
        self._column = kinds
        self._next = first_row

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the next rows, converted to the columns of the table; the column of kinds is kept.

        Raise InvalidRequestError for the first row that is refused.
        """
        given, kinds = self._kinds.split(batch)
        rows = self._conform(given, self._next)
        written_rows(self._schema, self._kinds.read(rows, kinds, self._next), self._next)
        self._next += rows.num_rows
        if self._column is None or self._column in rows.schema.names:
            return rows
        return rows.append_column(self._column, kinds)


def checked_rows(
    path: str,
    source_format: SourceFormat,
    schema: TableSchema,
    dialect: TextDialect = CSV_AND_PLAIN,
    kinds: str | None = None,
    opener: Opener | None = None,
    mapping: ColumnMapping = BY_NAME,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file ``path``, in the table's columns. A column that the file lacks is
    left out: the writer adds it, with its default.

    A refused row raises InvalidRequestError, which names the file and the row, counted from 1.
    """
    columns = schema.arrow_schema()
    if kinds is not None and kinds not in columns.names:
        columns = columns.append(pa.field(kinds, pa.string()))
    with naming(path):
        checked, row = CheckedRows(schema, kinds, first_row=1), 1
        columns = mapping.readable(columns)
        for batch in read_rows(path, source_format, columns, dialect, opener=opener):
            given = mapping.applied(batch, row, schema.column_names)
            rows, names = checked.add(given), {*given.schema.names}
            yield rows.select([name for name in rows.schema.names if name in names])
            row += batch.num_rows
