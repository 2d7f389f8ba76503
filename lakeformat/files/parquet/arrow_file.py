# SPDX-License-Identifier: Apache-2.0
"""Writes Parquet files in which Arrow encodes all columns."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.codecs import CODECS
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileSettings
from lakeformat.files.parquet.end import END_BYTES, MAGIC, footer_of, with_end

__all__ = ["ArrowFile", "FooterStream", "ParquetLayout", "arrow_writer"]


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """The settings of a Parquet file, which all its row groups share."""

    schema: pa.Schema
    """The Arrow schema of the file; a timestamp that becomes INT96 is 12 bytes in it."""
    settings: FileSettings
    dictionary_columns: Sequence[str]
    bounded: Sequence[str] | bool
    """The paths of the columns that have bounds in the footer; True means all columns."""
    change_footer: Callable[[bytes], bytes] | None
    """A function that returns the footer to write, as bytes; if None, Arrow's footer is written."""
    times_in_utc: bool = True
    """True marks TIME columns as UTC, as Java's writer for Paimon does. False does not mark them,
    like Java's writer for Iceberg.
    """


def arrow_writer(
    stream: IO[bytes] | io.RawIOBase | pa.NativeFile,
    schema: pa.Schema,
    layout: ParquetLayout,
    **more: Any,
) -> pq.ParquetWriter:
    """Return Arrow's writer for a file with these columns and the settings of ``layout``.

    ``schema`` has all or some of the columns of ``layout``. ``more`` are further arguments of
    Arrow's writer.
    """
    settings = layout.settings
    codec = CODECS[FileFormat.PARQUET][settings.compression]
    return pq.ParquetWriter(
        stream,
        schema,
        compression=codec,
        compression_level=settings.zstd_level if codec == "zstd" else None,
        use_dictionary=[*layout.dictionary_columns],
        write_statistics=layout.bounded,
        store_decimal_as_integer=True,
        write_time_adjusted_to_utc=layout.times_in_utc,
        write_page_checksum=True,
        # Readers use the table's schema. Java ignores the schema that Arrow would store.
        store_schema=False,
        **more,
    )


class ArrowFile:
    """A Parquet file in which Arrow encodes each column; each ``write`` adds a row group."""

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


class FooterStream(io.RawIOBase):
    """Passes the bytes of a Parquet file on, but changes the footer before it is written.

    From ``hold`` on, the stream keeps all bytes in memory. ``release`` changes the footer in these
    bytes, and then writes all of them.
    """

    def __init__(self, stream: IO[bytes], change: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._change = change
        self._held: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell() + len(self._held or b"")

    def write(self, content: object) -> int:
        view = memoryview(content)  # type: ignore[arg-type]
        if self._held is None:
            self._stream.write(view)
        else:
            self._held += view
        return view.nbytes

    def hold(self) -> None:
        """Keep in memory all bytes that are written from now on; the footer is at their end."""
        self._held = bytearray()

    def release(self) -> None:
        """Write the held bytes with the changed footer."""
        assert self._held is not None
        held, self._held = bytes(self._held), None
        assert held.endswith(MAGIC)
        footer = footer_of(held)
        start = len(held) - END_BYTES - len(footer)
        self._stream.write(held[:start] + with_end(self._change(footer)))
