# SPDX-License-Identifier: Apache-2.0
"""Writes a Parquet data file, one row group at a time."""

from __future__ import annotations

from contextlib import ExitStack

import pyarrow as pa

from lakeformat.files.parquet.arrow_file import ArrowFile, ParquetLayout
from lakeformat.files.parquet.dictionary_columns import pick_dictionary_columns
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.file_metrics import FileMetrics
from lakeformat.iceberg.write.new_entries import NewFile
from lakeformat.iceberg.write.parquet_columns import parquet_fields, parquet_schema, to_stored
from lakeformat.iceberg.write.settings import WriteSettings

__all__ = ["DataFile"]


class DataFile:
    """A data file that is being written; no snapshot refers to it yet."""

    def __init__(
        self,
        places: FilePlaces,
        uri: str,
        partition: pa.StructArray,
        fields: tuple[Field, ...],
        settings: WriteSettings,
    ) -> None:
        """Start a file; ``partition`` has the partition values of its rows, as an array of length
        one.
        """
        self._uri, self._partition, self._settings = uri, partition, settings
        self._schema = parquet_schema(fields)
        self._metrics = FileMetrics(parquet_fields(fields), settings.modes)
        self._rows = 0
        self._file: ArrowFile | None = None
        self._opened = ExitStack()
        storage, path = places.place(uri)
        self._stream = self._opened.enter_context(storage.open_output(path))

    @property
    def size(self) -> int:
        """The number of bytes written so far."""
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group; they must have all columns of the file."""
        plain = rows.select(self._schema.names)
        stored = to_stored(plain, self._schema)
        if self._file is None:
            layout = ParquetLayout(
                self._schema,
                self._settings.file,
                pick_dictionary_columns(plain),
                bounded=True,
                change_footer=None,
                times_in_utc=False,
            )
            self._file = ArrowFile(self._stream, layout)
        self._metrics.add(plain)
        self._file.write(stored)
        self._rows += rows.num_rows

    def close(self) -> NewFile:
        """Finish a file that has rows, and return the values for its manifest entry."""
        assert self._file is not None
        footer = self._file.close()
        size = self._stream.tell()
        self._opened.close()
        members = {
            "file_path": self._uri,
            "record_count": self._rows,
            "file_size_in_bytes": size,
            **self._metrics.result(footer),
        }
        return NewFile(self._partition, members)

    def discard(self) -> None:
        """Stop writing; the caller deletes the incomplete file."""
        if self._file is not None:
            self._file.discard()
        stopped = _StoppedError()
        self._opened.__exit__(_StoppedError, stopped, None)


class _StoppedError(Exception):
    """Raised to close the stream of a file that is not finished."""
