"""Writes rows into data files, starting a new file when one has reached the target size."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.datafile.dictionary_columns import pick_dictionary_columns
from lakeformat.datafile.field_ids import parquet_schema
from lakeformat.errors import LakeError
from lakeformat.layout import data_file_name
from lakeformat.options import TableOptions
from lakeformat.storage import Storage
from lakeformat.types import DataField

__all__ = ["RollingWriter", "WrittenFile"]

ROW_GROUP_ROWS = 128 * 1024
ROW_GROUP_BYTES = 64 << 20
"""Rows are held back until a row group is worth writing: this bounds the memory of wide rows."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished, durable data file that nothing refers to yet."""

    name: str
    path: str
    size: int
    row_count: int


class RollingWriter:
    """One writer's files in one directory; rows keep their order across files."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
        unique: str,
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._schema = parquet_schema(fields)
        self._options = options
        self._unique = unique
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._open: _OpenFile | None = None
        self._started: list[str] = []
        self._finished: list[WrittenFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; ``batch`` already has the table's columns and types."""
        for start in range(0, batch.num_rows, ROW_GROUP_ROWS):
            self._hold(batch.slice(start, ROW_GROUP_ROWS))

    def finish(self) -> list[WrittenFile]:
        """Close the last file; every file returned is durable."""
        self._flush()
        self._roll()
        return list(self._finished)

    def abort(self) -> None:
        """Remove everything written so far; what the storage does not let go is an orphan."""
        if self._open is not None:
            self._open.discard()
            self._open = None
        for path in self._started:
            with suppress(LakeError):
                self._storage.delete(path)

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._held_rows:
            return
        rows = pa.Table.from_batches(self._held).cast(self._schema)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        if self._open is None:
            self._open = self._start_file(pick_dictionary_columns(rows))
        self._open.write_row_group(rows)
        if self._open.size >= self._options.target_file_size_bytes:
            self._roll()

    def _start_file(self, dictionary_columns: list[str]) -> _OpenFile:
        name = data_file_name(
            self._options.data_file_prefix, self._unique, len(self._started), "parquet"
        )
        path = f"{self._directory}/{name}"
        self._started.append(path)
        return _OpenFile(self._storage, path, name, self._schema, self._options, dictionary_columns)

    def _roll(self) -> None:
        if self._open is not None:
            self._finished.append(self._open.close())
            self._open = None


class _OpenFile:
    """The Parquet file being written."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        name: str,
        schema: pa.Schema,
        options: TableOptions,
        dictionary_columns: list[str],
    ) -> None:
        self._path, self._name, self._rows = path, name, 0
        self._stack = ExitStack()
        self._stream: IO[bytes] = self._stack.enter_context(storage.open_output(path))
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression=options.file_compression,
            compression_level=_level(options),
            use_dictionary=dictionary_columns,
            store_decimal_as_integer=True,
            store_schema=False,  # readers go by the table's schema; Java ignores Arrow's
        )

    @property
    def size(self) -> int:
        """Bytes written so far, without the footer."""
        return self._stream.tell()

    def write_row_group(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))

    def close(self) -> WrittenFile:
        with self._stack:
            self._writer.close()
            size = self._stream.tell()
        return WrittenFile(self._name, self._path, size, self._rows)

    def discard(self) -> None:
        """Stop writing; the caller removes what is there."""
        self._stack.close()


def _level(options: TableOptions) -> int | None:
    is_zstd = options.file_compression == "zstd"
    return options.file_compression_zstd_level if is_zstd else None
