# SPDX-License-Identifier: Apache-2.0
"""Writes Avro files, row by row with fastavro."""

from __future__ import annotations

import hashlib
import io
from typing import IO, Any

import fastavro
import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.avro.schema import avro_columns, plain_record
from lakeformat.files.avro.types import avro_record, to_stored
from lakeformat.files.batch_statistics import BatchStatistics
from lakeformat.files.codecs import CODECS
from lakeformat.files.column_statistics import ColumnStatistics, Detail, has_order
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileContent

__all__ = ["AvroFileWriter"]

ROWS_AT_ONCE = 8 * 1024
BLOCK_BYTES = 64 << 10


class AvroFileWriter:
    """Writes an Avro file, block by block.

    The header declares the schema with Java's logical types. The blocks are encoded by a schema
    without logical types, which stores the same bytes. See ``schema.py``.
    """

    def __init__(self, stream: IO[bytes], content: FileContent, unique: str) -> None:
        """Begin a file.

        The sync marker between the blocks is made from ``unique``, a text that no other file has,
        such as the name of this file. Raise ``UnsupportedError`` if the names of two nested columns
        collide.
        """
        self._stream = stream
        self._fields = content.fields
        settings = content.settings
        codec = CODECS[FileFormat.AVRO][settings.compression]
        self._container: dict[str, Any] = {
            "codec": codec,
            "codec_compression_level": (settings.zstd_level if codec == "zstandard" else None),
            "sync_interval": BLOCK_BYTES,
            "sync_marker": hashlib.md5(unique.encode(), usedforsecurity=False).digest(),
        }
        declared = avro_record(content.fields)
        try:
            fastavro.parse_schema(declared)
        except fastavro.schema.SchemaParseException as reason:
            raise UnsupportedError(
                "avro files cannot hold these columns, because the names of two nested columns "
                f"collide ({reason}): set 'file.format' to parquet, or rename one of the two"
            ) from None
        self._plain = fastavro.parse_schema(plain_record(avro_columns(declared)))
        self._plain_header_size = len(self._encode(self._plain, []))
        bounded = [
            mode.detail is Detail.BOUNDS and has_order(field.type)
            for field, mode in zip(content.fields, content.modes, strict=True)
        ]
        self._statistics = BatchStatistics(content.fields, bounded)
        stream.write(self._encode(declared, []))

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        for batch in rows.to_batches(ROWS_AT_ONCE):
            encoded = self._encode(self._plain, self._records(batch))
            self._stream.write(encoded[self._plain_header_size :])

    def close(self) -> list[ColumnStatistics]:
        return self._statistics.result()

    def discard(self) -> None:
        pass

    def _records(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        names = [field.name for field in self._fields]
        columns = [
            to_stored(column, field.type).to_pylist()
            for column, field in zip(batch.columns, self._fields, strict=True)
        ]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _encode(self, schema: Any, records: list[dict[str, Any]]) -> bytes:
        buffer = io.BytesIO()
        fastavro.writer(buffer, schema, records, **self._container)
        return buffer.getvalue()
