"""Writes Parquet files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.datafile.column_statistics import ColumnStatistics
from lakeformat.datafile.decimal_range import refuse_beyond_int32
from lakeformat.datafile.dictionary_columns import pick_dictionary_columns
from lakeformat.datafile.field_ids import parquet_schema
from lakeformat.datafile.file_writer import FileContent
from lakeformat.datafile.footer_statistics import FooterStatistics
from lakeformat.datafile.footer_stream import FooterStream
from lakeformat.datafile.int96_arrays import INT96_BYTES, int96_schema, leaf_columns, to_int96
from lakeformat.datafile.int96_footer import with_int96
from lakeformat.datafile.null_rows import with_values_below_nulls
from lakeformat.datafile.repeated_columns import repeated_columns
from lakeformat.datafile.repeated_footer import with_repeated
from lakeformat.datafile.repeated_pages import RepeatingStream

__all__ = ["ParquetFileWriter"]


class ParquetFileWriter:
    """Every ``write`` makes a row group; the first one decides which columns get a dictionary.

    A column of text may come as a dictionary: its values are looked at once then.
    """

    def __init__(self, stream: IO[bytes], content: FileContent, rows: int) -> None:
        """Each ``write`` has about so many ``rows``."""
        self._names = [field.name for field in content.fields]
        self._repeated = repeated_columns(content, rows)
        repeated = {column.name for column in self._repeated}
        modes = dict(zip(self._names, content.modes, strict=True))
        fields = tuple(field for field in content.fields if field.name not in repeated)
        self._written = [field.name for field in fields]
        self._schema = parquet_schema(fields)
        self._stored = int96_schema(self._schema)
        leaves = list(leaf_columns(self._stored))
        int96 = [number for number, (_, kind) in enumerate(leaves) if kind == INT96_BYTES]
        # INT96 has no order, so no reader may find bounds of it, those of its bytes least of all.
        self._ordered = [path for path, kind in leaves if kind != INT96_BYTES]
        self._statistics = FooterStatistics(fields, [modes[name] for name in self._written])
        self._footers: list[pq.FileMetaData] = []
        self._options, self._key_columns = content.options, content.key_columns
        self._is_ordered = not int96
        self._footer_stream: FooterStream | None = None
        self._pages: RepeatingStream | None = None
        self._stream: IO[bytes] | io.RawIOBase = stream
        if int96 or repeated:
            self._stream = self._footer_stream = FooterStream(stream, partial(self._footer, int96))
        if repeated:
            self._stream = self._pages = RepeatingStream(self._stream, self._repeated)
        self._writer: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        whole, rows = rows, rows.select(self._written)
        self._statistics.add(rows)
        if self._writer is None:
            self._schema = _keeping_dictionaries(self._schema, rows.schema)
            self._stored = _keeping_dictionaries(self._stored, rows.schema)
        rows = with_values_below_nulls(rows).cast(self._schema)
        if self._writer is None:
            self._writer = self._open(pick_dictionary_columns(rows))
        if not self._is_ordered:
            rows = to_int96(rows, self._stored)
        if self._pages is not None:
            self._pages.start_group(rows.num_rows)
        try:
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        except pa.ArrowInvalid:
            refuse_beyond_int32(whole, self._key_columns)
            raise

    def close(self) -> list[ColumnStatistics]:
        writer = self._writer or self._open([])
        if self._footer_stream is not None:
            self._footer_stream.hold()
        writer.close()
        if self._footer_stream is not None:
            self._footer_stream.release()
        found = dict(zip(self._written, self._statistics.result(self._footers[0]), strict=True))
        for column in self._repeated:
            found[column.name] = found[self._written[column.source]]
        return [found[name] for name in self._names]

    def _footer(self, int96: Sequence[int], content: bytes) -> bytes:
        """The footer of all columns, made of what Arrow says about those it has written."""
        if int96:
            content = with_int96(content, int96)
        if self._pages is None:
            return content
        return with_repeated(content, self._repeated, self._pages.copies)

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
            write_statistics=True if self._is_ordered else self._ordered,
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
