"""One Parquet file, encoded by Arrow, with the settings for a table's files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.codecs import codec_of
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileSettings
from lakeformat.files.parquet.footer_stream import FooterStream

__all__ = ["ArrowFile"]


class ArrowFile:
    """A file that Arrow writes row group by row group."""

    def __init__(
        self,
        stream: IO[bytes],
        schema: pa.Schema,
        settings: FileSettings,
        *,
        dictionary_columns: Sequence[str],
        bounded: Sequence[str] | bool,
        change_footer: Callable[[bytes], bytes] | None,
    ) -> None:
        """Open a file; ``bounded`` are the paths with bounds in the footer, True for all."""
        codec = codec_of(FileFormat.PARQUET, settings.compression)
        self._held = FooterStream(stream, change_footer) if change_footer else None
        self._footers: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._held or stream,
            schema,
            compression=codec,
            compression_level=settings.zstd_level if codec == "zstd" else None,
            use_dictionary=[*dictionary_columns],
            write_statistics=bounded,
            store_decimal_as_integer=True,
            write_time_adjusted_to_utc=True,  # as Java marks a TIME
            write_page_checksum=True,
            store_schema=False,  # readers use the table's schema; Java ignores Arrow's
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
