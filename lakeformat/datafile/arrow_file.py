"""Parquet files all of whose columns Arrow encodes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.datafile.footer_stream import FooterStream
from lakeformat.options import TableOptions

__all__ = ["ArrowFile", "arrow_writer"]


def arrow_writer(
    stream: IO[bytes] | io.RawIOBase | pa.NativeFile,
    schema: pa.Schema,
    options: TableOptions,
    dictionary_columns: Sequence[str],
    **more: Any,
) -> pq.ParquetWriter:
    """Arrow's own writer as it is wanted for files of a table."""
    is_zstd = options.file_compression == "zstd"
    return pq.ParquetWriter(
        stream,
        schema,
        compression=options.file_compression,
        compression_level=options.file_compression_zstd_level if is_zstd else None,
        use_dictionary=[*dictionary_columns],
        store_decimal_as_integer=True,
        write_time_adjusted_to_utc=True,  # as Java marks a TIME
        write_page_checksum=True,
        store_schema=False,  # readers go by the table's schema; Java ignores Arrow's
        **more,
    )


class ArrowFile:
    """A file that Arrow writes as it comes."""

    def __init__(
        self,
        stream: IO[bytes],
        schema: pa.Schema,
        options: TableOptions,
        dictionary_columns: Sequence[str],
        bounded: Sequence[str] | bool,
        change_footer: Callable[[bytes], bytes] | None,
    ) -> None:
        """``bounded`` are the paths with bounds in the footer; True for all."""
        self._held = FooterStream(stream, change_footer) if change_footer else None
        self._footers: list[pq.FileMetaData] = []
        self._writer = arrow_writer(
            self._held or stream,
            schema,
            options,
            dictionary_columns,
            write_statistics=bounded,
            metadata_collector=self._footers,
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
