# SPDX-License-Identifier: Apache-2.0
"""Writes Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import IO, TypeAlias

import pyarrow as pa

from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.files.decimal_range import refuse_beyond_int32
from lakeformat.files.field_ids import parquet_schema
from lakeformat.files.file_writer import FileContent
from lakeformat.files.nested_arrays import with_members_below_nulls
from lakeformat.files.parquet.arrow_file import ArrowFile, ParquetLayout
from lakeformat.files.parquet.assembled_file import (
    WORTH_ASSEMBLING,
    AssembledFile,
    is_worth_assembling,
)
from lakeformat.files.parquet.dictionary_columns import pick_dictionary_columns
from lakeformat.files.parquet.footer_statistics import FooterStatistics
from lakeformat.files.parquet.int96_arrays import (
    INT96_BYTES,
    int96_schema,
    leaf_columns,
    to_int96,
)
from lakeformat.files.parquet.int96_footer import with_int96
from lakeformat.types.arrow_types import in_full

__all__ = ["OpenFile", "ParquetFileWriter", "new_file", "with_values_below_nulls"]

OpenFile: TypeAlias = ArrowFile | AssembledFile
_NOT_REPEATED: Mapping[str, str] = MappingProxyType({})


def new_file(
    stream: IO[bytes],
    layout: ParquetLayout,
    rows: pa.Table,
    repeated: Mapping[str, str] = _NOT_REPEATED,
) -> OpenFile:
    """Return a new file with the columns of ``rows``, and with the fastest encoder for them.

    The rows are not written yet. ``repeated`` maps a column to the earlier column with the same
    values.
    """
    if rows.num_rows >= WORTH_ASSEMBLING and is_worth_assembling(rows, layout, repeated):
        return AssembledFile(stream, layout, repeated)
    return ArrowFile(stream, layout)


class ParquetFileWriter:
    """Writes a Parquet file; each ``write`` adds a row group.

    The first row group decides which columns get a dictionary in the file. The Arrow rows given to
    ``write`` may have dictionary arrays of texts, and 64-bit decimals.
    """

    def __init__(self, stream: IO[bytes], content: FileContent) -> None:
        self._stream, self._content = stream, content
        self._schema = parquet_schema(content.fields)
        self._stored = int96_schema(self._schema)
        leaves = [*leaf_columns(self._stored)]
        self._int96 = [number for number, (_, kind) in enumerate(leaves) if kind == INT96_BYTES]
        # INT96 has no order, so readers must find no bounds of it. Bounds of its 12 bytes would be
        # wrong.
        ordered = [path for path, kind in leaves if kind != INT96_BYTES]
        self._bounded = ordered if self._int96 else True
        self._statistics = FooterStatistics(content.fields, content.modes)
        self._file: OpenFile | None = None

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        if self._file is None:
            self._schema = _keeping_numbers(self._schema, rows.schema)
            self._stored = _keeping_numbers(self._stored, rows.schema)
        stored = with_values_below_nulls(rows).cast(self._schema)
        if self._file is None:
            wanted = self._content.settings.has_dictionaries
            self._file = self._open(stored, pick_dictionary_columns(stored) if wanted else [])
        if self._int96:
            stored = to_int96(stored, self._stored)
        try:
            self._file.write(stored)
        except pa.ArrowInvalid:
            refuse_beyond_int32(rows, self._content.key_columns)
            raise

    def close(self) -> list[ColumnStatistics]:
        return self._statistics.result(
            (self._file or self._open(pa.Table.from_batches([], self._schema), [])).close()
        )

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()

    def _open(self, rows: pa.Table, dictionary_columns: Sequence[str]) -> OpenFile:
        change_footer = partial(with_int96, leaves=self._int96) if self._int96 else None
        layout = ParquetLayout(
            self._stored, self._content.settings, dictionary_columns, self._bounded, change_footer
        )
        return new_file(self._stream, layout, rows, self._content.repeated)


def _keeping_numbers(schema: pa.Schema, given: pa.Schema) -> pa.Schema:
    """Return ``schema`` with the dictionary and 64-bit decimal types that ``given`` has.

    The schemas have the same columns in the same order; columns of all other types are unchanged.
    """
    fields = zip(schema, given, strict=True)
    return pa.schema(
        [
            field.with_type(came.type) if in_full(came.type) != came.type else field
            for field, came in fields
        ],
        schema.metadata,
    )


def with_values_below_nulls(rows: pa.Table) -> pa.Table:
    """Return the rows with a value in each NOT NULL member of a null ROW.

    Arrow refuses to write a null in a NOT NULL member, even inside of a null ROW.
    """
    for number, field in enumerate(rows.schema):
        if _has_required_members(field.type):
            chunks = rows.column(number).chunks
            parts = [with_members_below_nulls(part, field.type) for part in chunks]
            rows = rows.set_column(number, field, pa.chunked_array(parts, field.type))
    return rows


def _has_required_members(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind):
        return False
    return any(not field.nullable or _has_required_members(field.type) for field in kind)
