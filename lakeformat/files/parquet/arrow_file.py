"""Parquet files whose columns are all encoded by Arrow."""

from __future__ import annotations

import io
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.codecs import codec_of
from lakeformat.files.file_format import FileFormat
from lakeformat.files.parquet.footer_stream import FooterStream
from lakeformat.files.parquet.layout import ParquetLayout

__all__ = ["ArrowFile", "arrow_writer"]


def arrow_writer(
    stream: IO[bytes] | io.RawIOBase | pa.NativeFile,
    schema: pa.Schema,
    layout: ParquetLayout,
    **more: Any,
) -> pq.ParquetWriter:
    """Return Arrow's writer with the settings for a table's files, for all or some columns."""
    settings = layout.settings
    codec = codec_of(FileFormat.PARQUET, settings.compression)
    return pq.ParquetWriter(
        stream,
        schema,
        compression=codec,
        compression_level=settings.zstd_level if codec == "zstd" else None,
        use_dictionary=[*layout.dictionary_columns],
        write_statistics=layout.bounded,
        store_decimal_as_integer=True,
        write_time_adjusted_to_utc=True,  # as Java marks a TIME
        write_page_checksum=True,
        store_schema=False,  # readers use the table's schema; Java ignores Arrow's
        **more,
    )


class ArrowFile:
    """A file that Arrow writes row group by row group."""

    def __init__(self, stream: IO[bytes], layout: ParquetLayout) -> None:
        change = layout.change_footer
        self._held = FooterStream(stream, change) if change else None
        self._footers: list[pq.FileMetaData] = []
        self._writer = arrow_writer(
            self._held or stream, layout.schema, layout, metadata_collector=self._footers
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def close(self) -> pq.FileMetaData:
        if self._held is not None:
            self._held.hold()
        self._writer.close()
        if self._held is not None:
            self._held.release()
        return self._footers[0]

    def discard(self) -> None:
        self._writer.is_open = False
