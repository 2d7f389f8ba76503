"""Writes Parquet files."""

from __future__ import annotations

from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.datafile.column_statistics import ColumnStatistics
from lakeformat.datafile.decimal_range import refuse_beyond_int32
from lakeformat.datafile.dictionary_columns import pick_dictionary_columns
from lakeformat.datafile.field_ids import parquet_schema
from lakeformat.datafile.file_writer import FileContent
from lakeformat.datafile.footer_statistics import FooterStatistics
from lakeformat.datafile.int96_arrays import INT96_BYTES, int96_schema, leaf_columns, to_int96
from lakeformat.datafile.int96_footer import FooterStream
from lakeformat.datafile.null_rows import with_values_below_nulls

__all__ = ["ParquetFileWriter"]


class ParquetFileWriter:
    """Every ``write`` makes a row group; the first one decides which columns get a dictionary.

    A column of text may come as a dictionary: its values are looked at once then.
    """

    def __init__(self, stream: IO[bytes], content: FileContent) -> None:
        self._schema = parquet_schema(content.fields)
        self._stored = int96_schema(self._schema)
        leaves = list(leaf_columns(self._stored))
        int96 = [number for number, (_, kind) in enumerate(leaves) if kind == INT96_BYTES]
        self._footer_stream = FooterStream(stream, int96) if int96 else None
        self._stream = self._footer_stream or stream
        # INT96 has no order, so no reader may find bounds of it, those of its bytes least of all.
        self._ordered = [path for path, kind in leaves if kind != INT96_BYTES]
        self._statistics = FooterStatistics(content.fields, content.modes)
        self._footers: list[pq.FileMetaData] = []
        self._options, self._key_columns = content.options, content.key_columns
        self._writer: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        if self._writer is None:
            self._schema = _keeping_dictionaries(self._schema, rows.schema)
            self._stored = _keeping_dictionaries(self._stored, rows.schema)
        rows = with_values_below_nulls(rows).cast(self._schema)
        if self._writer is None:
            self._writer = self._open(pick_dictionary_columns(rows))
        if self._footer_stream is not None:
            rows = to_int96(rows, self._stored)
        try:
            self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        except pa.ArrowInvalid:
            refuse_beyond_int32(rows, self._key_columns)
            raise

    def close(self) -> list[ColumnStatistics]:
        writer = self._writer or self._open([])
        if self._footer_stream is not None:
            self._footer_stream.hold()
        writer.close()
        if self._footer_stream is not None:
            self._footer_stream.release()
        return self._statistics.result(self._footers[0])

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False

    def _open(self, dictionary_columns: list[str]) -> pq.ParquetWriter:
        options = self._options
        is_zstd = options.file_compression == "zstd"
        return pq.ParquetWriter(
            self._stream,
            self._stored,
            compression=options.file_compression,
            compression_level=options.file_compression_zstd_level if is_zstd else None,
            use_dictionary=dictionary_columns,
            write_statistics=self._ordered if self._footer_stream is not None else True,
            store_decimal_as_integer=True,
            write_time_adjusted_to_utc=True,  # as Java marks a TIME
            write_page_checksum=True,
            store_schema=False,  # readers go by the table's schema; Java ignores Arrow's
            metadata_collector=self._footers,
        )


def _keeping_dictionaries(schema: pa.Schema, given: pa.Schema) -> pa.Schema:
    """The same columns, those that come as dictionaries left as they are."""
    fields = zip(schema, given, strict=True)
    return pa.schema(
        [
            field.with_type(came.type) if pa.types.is_dictionary(came.type) else field
            for field, came in fields
        ],
        schema.metadata,
    )
