"""Writes rows into data files, starting a new file when one has reached the target size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from lakeformat.datafile.avro_writer import AvroFileWriter
from lakeformat.datafile.column_statistics import ColumnStatistics, reduce_statistics
from lakeformat.datafile.file_format import FileFormat
from lakeformat.datafile.file_writer import FileContent, FileWriter
from lakeformat.datafile.format_types import require_format_holds
from lakeformat.datafile.key_rows import KeyRows
from lakeformat.datafile.orc_writer import OrcFileWriter
from lakeformat.datafile.parquet_writer import ParquetFileWriter
from lakeformat.datafile.statistics_modes import StatisticsMode, column_modes
from lakeformat.errors import LakeError
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
    statistics: tuple[ColumnStatistics, ...]
    """Of each column of the file, in order, cut down to what the table keeps."""
    keys: KeyRows | None = None
    """Of a primary-key table's file."""


class RollingWriter:
    """One writer's files in one directory; rows keep their order across files."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
        next_name: Callable[[], str],
        *,
        modes: Sequence[StatisticsMode] | None = None,
        key_columns: Sequence[str] = (),
    ) -> None:
        """``modes`` are those of the options unless given; ``key_columns`` makes ``keys`` known."""
        require_format_holds(fields, options)
        names = [field.name for field in fields]
        self._content = FileContent(fields, modes or column_modes(names, options), options)
        self._storage = storage
        self._directory = directory
        self._next_name = next_name
        self._key_columns = key_columns
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
        rows = pa.Table.from_batches(self._held)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        if self._open is None:
            self._open = self._start_file()
        self._open.write(rows)
        if self._open.size >= self._content.options.target_file_size_bytes:
            self._roll()

    def _start_file(self) -> _OpenFile:
        name = self._next_name()
        path = f"{self._directory}/{name}"
        self._started.append(path)
        keys = KeyRows(self._key_columns) if self._key_columns else None
        return _OpenFile(self._storage, path, name, self._content, keys)

    def _roll(self) -> None:
        if self._open is not None:
            self._finished.append(self._open.close())
            self._open = None


class _OpenFile:
    """The file being written."""

    def __init__(
        self, storage: Storage, path: str, name: str, content: FileContent, keys: KeyRows | None
    ) -> None:
        self._path, self._name, self._rows = path, name, 0
        self._modes, self._keys = content.modes, keys
        self._stack = ExitStack()
        self._stream: IO[bytes] = self._stack.enter_context(storage.open_output(path))
        with self._leaving_on_failure():
            self._writer = _writer(self._stream, content, name)

    @property
    def size(self) -> int:
        """Bytes written so far, without the footer."""
        return self._writer.size

    def write(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        with self._leaving_on_failure():
            self._writer.write(rows)
        if self._keys is not None:
            self._keys.add(rows)

    def close(self) -> WrittenFile:
        with self._stack:
            try:
                exact = self._writer.close()
            finally:
                self._writer.discard()
            size = self._stream.tell()
        kept = tuple(map(reduce_statistics, exact, self._modes))
        return WrittenFile(self._name, self._path, size, self._rows, kept, self._keys)

    def discard(self) -> None:
        """Stop writing; the caller removes what is there."""
        self._writer.discard()
        with suppress(LakeError):
            self._stack.close()

    @contextmanager
    def _leaving_on_failure(self) -> Iterator[None]:
        """Hand an error to the storage's stream at once: it knows what the disk meant by it."""
        try:
            yield
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise


def _writer(stream: IO[bytes], content: FileContent, name: str) -> FileWriter:
    match FileFormat(content.options.file_format):
        case FileFormat.PARQUET:
            return ParquetFileWriter(stream, content)
        case FileFormat.ORC:
            return OrcFileWriter(stream, content)
        case FileFormat.AVRO:
            return AvroFileWriter(stream, content, name)
