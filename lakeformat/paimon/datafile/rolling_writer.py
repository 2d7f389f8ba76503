# SPDX-License-Identifier: Apache-2.0
"""Writes rows into data files, and starts a new file when one has reached the target size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from lakeformat.errors import LakeError
from lakeformat.files.column_statistics import ColumnStatistics, StatisticsMode, reduce_statistics
from lakeformat.files.field_ids import parquet_schema
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileContent, FileSettings, FileWriter
from lakeformat.files.parquet.writer import ParquetFileWriter
from lakeformat.paimon.datafile.external_paths import ExternalPaths, FilePlace
from lakeformat.paimon.datafile.file_index_writer import (
    INDEX_SUFFIX,
    FileIndexWriter,
    WantedIndex,
    wanted_indexes,
)
from lakeformat.paimon.datafile.file_statistics import column_modes
from lakeformat.paimon.datafile.key_order import KeyOrder, KeyRows
from lakeformat.paimon.datafile.system_fields import KEY_PREFIX
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema_changes.format_rules import require_format_holds
from lakeformat.storage import Storage
from lakeformat.types.arrow_types import in_full
from lakeformat.types.types import DataField

__all__ = ["RollingWriter", "WrittenFile", "file_content", "table_of"]

ROW_GROUP_ROWS = 128 * 1024
ROW_GROUP_BYTES = 64 << 20
"""The size in memory of buffered rows at which a row group is written; it limits the memory."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished, durable data file that no manifest names yet."""

    name: str
    path: str
    size: int
    row_count: int
    statistics: tuple[ColumnStatistics, ...]
    """The statistics of each column, in the order of the file, with the detail that options ask
    for.
    """
    keys: KeyRows | None = None
    """The keys, sequence numbers and deletes of the file's rows; None in an append table."""
    external_path: str | None = None
    """The file's URI for its manifest entry, if the file is outside of its table; else None."""
    embedded_index: bytes | None = None
    """The file index, if it is small enough for the manifest entry; else None."""
    extra_files: tuple[str, ...] = ()
    """The names of the index files of this file, in the same directory."""


class RollingWriter:
    """Writes rows to files of one bucket, in the order in which they are added."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
        next_name: Callable[[], str],
        *,
        modes: Sequence[StatisticsMode] | None = None,
        key_order: KeyOrder | None = None,
        external: ExternalPaths | None = None,
        indexed: bool = True,
    ) -> None:
        """Open no file yet; ``modes`` are the statistics modes, by default those of the options.

        ``next_name`` returns the name of each file. ``key_order`` checks the keys of a primary-key
        table. Files get the file indexes of the options if ``indexed``; changelogs need none. Files
        are written to the ``external`` paths if these are given.
        """
        require_format_holds(fields, options)
        keys = tuple(key_order.columns) if key_order is not None else ()
        self._content = file_content(fields, options, modes=modes, key_columns=keys)
        self._options = options
        self._storage = storage
        self._directory = directory
        self._next_name = next_name
        self._key_order = key_order
        self._external = external
        self._indexes: list[WantedIndex] = []
        if indexed and options.asks_for_file_indexes:
            self._indexes = wanted_indexes(fields, options)
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._open: _OpenFile | None = None
        self._started: list[FilePlace] = []
        self._finished: list[WrittenFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, which have the columns and types of the files."""
        for start in range(0, batch.num_rows, ROW_GROUP_ROWS):
            self._hold(batch.slice(start, ROW_GROUP_ROWS))

    def finish(self) -> list[WrittenFile]:
        """Close the last file, and return all files, which are durable."""
        self._flush()
        self._roll()
        return list(self._finished)

    def abort(self) -> None:
        """Delete all files of the writer; a file that cannot be deleted becomes an orphan."""
        if self._open is not None:
            self._open.discard()
            self._open = None
        for place in self._started:
            with suppress(LakeError):
                place.storage.delete(place.path)
                if self._indexes:
                    place.storage.delete(place.path + INDEX_SUFFIX)

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._held_rows:
            return
        rows = table_of(self._held)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        if self._open is None:
            self._open = self._start_file()
        try:
            self._open.write(rows)
        except (TypeError, ValueError):
            # only for a message
            from lakeformat.paimon.datafile.stored_nulls import refuse_stored_nulls

            refuse_stored_nulls(rows, self._content.fields)
            raise
        if self._open.size >= self._options.target_file_size_bytes:
            self._roll()

    def _start_file(self) -> _OpenFile:
        name = self._next_name()
        if self._external is not None:
            place = self._external.next(name)
        else:
            place = FilePlace(self._storage, f"{self._directory}/{name}")
        self._started.append(place)
        return _OpenFile(place, name, self._content, self._options, self._key_order, self._indexes)

    def _roll(self) -> None:
        if self._open is not None:
            self._finished.append(self._open.close())
            self._open = None


def file_content(
    fields: tuple[DataField, ...],
    options: TableOptions,
    *,
    modes: Sequence[StatisticsMode] | None = None,
    key_columns: tuple[str, ...] = (),
) -> FileContent:
    """Return columns, statistics modes and settings of the files of one writer.

    ``modes=None`` stands for the modes of the options.
    """
    settings = FileSettings(
        compression=options.file_compression,
        zstd_level=options.file_compression_zstd_level,
        target_bytes=options.target_file_size_bytes,
        has_dictionaries=options.parquet_enable_dictionary,
    )
    names = [field.name for field in fields]
    return FileContent(
        fields,
        modes or column_modes(names, options),
        settings,
        key_columns,
        _repeated_columns(fields, key_columns),
    )


def _repeated_columns(fields: tuple[DataField, ...], key_columns: Sequence[str]) -> dict[str, str]:
    """Return the key columns that a Parquet file stores twice, each with the name of its copy."""
    if not key_columns:
        return {}
    stored = {field.name: field for field in parquet_schema(fields)}
    found = {}
    for name in key_columns:
        field, key = stored[name], stored.get(KEY_PREFIX + name)
        if key is not None and (key.type, key.nullable) == (field.type, field.nullable):
            found[name] = key.name
    return found


class _OpenFile:
    """A data file that is being written, with its keys and its file index."""

    def __init__(
        self,
        place: FilePlace,
        name: str,
        content: FileContent,
        options: TableOptions,
        key_order: KeyOrder | None,
        indexes: Sequence[WantedIndex],
    ) -> None:
        self._place, self._name, self._rows = place, name, 0
        self._modes, self._key_order = content.modes, key_order
        self._keys = KeyRows(key_order.columns) if key_order is not None else None
        self._index = FileIndexWriter(indexes) if indexes else None
        self._most_embedded = options.file_index_in_manifest_threshold_bytes
        self._stack = ExitStack()
        self._stream: IO[bytes] = self._stack.enter_context(place.storage.open_output(place.path))
        with self._leaving_on_failure():
            self._writer = _writer(self._stream, content, options, name)

    @property
    def size(self) -> int:
        """The number of bytes written so far, without the footer."""
        return self._writer.size

    def write(self, rows: pa.Table) -> None:
        if self._key_order is not None:
            place = self._place
            self._key_order.check(rows, place.storage.uri(place.path), self._rows)
        self._rows += rows.num_rows
        with self._leaving_on_failure():
            self._writer.write(rows)
        if self._keys is not None:
            self._keys.add(rows)
        if self._index is not None:
            self._index.add(rows)

    def close(self) -> WrittenFile:
        with self._stack:
            try:
                exact = self._writer.close()
            finally:
                self._writer.discard()
            size = self._stream.tell()
        kept = tuple(map(reduce_statistics, exact, self._modes))
        place = self._place
        embedded, extra_files = self._place_index()
        return WrittenFile(
            self._name,
            place.path,
            size,
            self._rows,
            kept,
            self._keys,
            place.external_path,
            embedded,
            extra_files,
        )

    def _place_index(self) -> tuple[bytes | None, tuple[str, ...]]:
        """Return the index for the manifest entry, and the names of index files.

        A large index is written to a file beside the data file; then the first result is None.
        """
        content = None if self._index is None else self._index.encode()
        if content is None or len(content) <= self._most_embedded:
            return content, ()
        place = self._place
        with place.storage.open_output(place.path + INDEX_SUFFIX) as stream:
            stream.write(content)
        return None, (self._name + INDEX_SUFFIX,)

    def discard(self) -> None:
        """Close the unfinished file; the caller deletes it."""
        self._writer.discard()
        with suppress(LakeError):
            self._stack.close()

    @contextmanager
    def _leaving_on_failure(self) -> Iterator[None]:
        """Close the storage's stream if the block raises, and pass the error to the stream.

        The stream may then raise a clearer error instead.
        """
        try:
            yield
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise


def _writer(
    stream: IO[bytes], content: FileContent, options: TableOptions, name: str
) -> FileWriter:
    match FileFormat(options.file_format):
        case FileFormat.PARQUET:
            return ParquetFileWriter(stream, content)
        case FileFormat.ORC:
            from lakeformat.files.orc.writer import OrcFileWriter

            return OrcFileWriter(stream, content)
        case FileFormat.AVRO:
            from lakeformat.files.avro.writer import AvroFileWriter

            return AvroFileWriter(stream, content, name)


def table_of(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows of all batches; columns remain dictionary-encoded if all batches have
    the same schema.
    """
    schema = batches[0].schema
    if any(batch.schema != schema for batch in batches):
        batches = [_in_full(batch) for batch in batches]
    rows = pa.Table.from_batches(batches)
    if any(map(pa.types.is_dictionary, rows.schema.types)):
        return rows.unify_dictionaries()
    return rows


def _in_full(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.cast(pa.schema([field.with_type(in_full(field.type)) for field in rows.schema]))
