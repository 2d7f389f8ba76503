# SPDX-License-Identifier: Apache-2.0
"""Writes rows to the table from which they were read; nulls are not replaced by default values."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.paimon.existing_keys import find_keys
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.write.as_of import WrittenAsOf
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.paimon.write.table_writer import TableWriter

__all__ = ["OwnRowsWriter"]


class OwnRowsWriter(TableWriter):
    """A writer for rows that were read, with all columns, from the table itself."""

    def __init__(self, handle: TableHandle, as_of: WrittenAsOf | None = None) -> None:
        super().__init__(handle, is_committed_here=True, find_keys=find_keys, as_of=as_of)
        self._conform = _AsTheyAre(handle.schema.fields)


class _AsTheyAre(InputColumns):
    """Returns batches unchanged: a null is not replaced by the column's default value."""

    def __call__(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        return batch
