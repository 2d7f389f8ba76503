# SPDX-License-Identifier: Apache-2.0
"""Writes rows to data files of a table: by partition, sorted, and of the target size.

The rows of each partition are held in memory until they fill a row group, or until all partitions
together have too many. When ``finish`` returns the manifest entries, all files are complete, but no
snapshot refers to them yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.parquet.join import CannotJoinError
from lakeformat.iceberg.data_paths import NEW_DATA_PATHS, require_own_data_path
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.copied_file import CopiedFiles, write_copies
from lakeformat.iceberg.write.data_file import DataFile
from lakeformat.iceberg.write.given_rows import GivenRows
from lakeformat.iceberg.write.new_entries import NewFile, delete_files, new_entries
from lakeformat.iceberg.write.partitioned_rows import PartitionedRows, Splitter
from lakeformat.iceberg.write.settings import write_settings
from lakeformat.iceberg.write.sorted_rows import can_sort, sorted_rows

__all__ = ["TableWriter"]

_MOST_BYTES = 256 << 20
"""The largest size of rows in memory, for all partitions together."""
_MOST_OPEN = 64
"""The largest number of open files."""

_Key: TypeAlias = tuple[bytes | None, ...]


@dataclass(slots=True)
class _Held:
    """The rows of one partition that are still in memory."""

    partition: pa.StructArray
    parts: list[pa.Table] = field(default_factory=list)
    bytes: int = 0


class TableWriter:
    """Writes rows to new files; at the end call ``finish``, or ``discard`` after an error."""

    def __init__(
        self,
        loaded: LoadedMetadata,
        environment: Environment,
        lineage: tuple[Field, ...] = (),
        *,
        is_sorted: bool = True,
        sort_order_id: int = 0,
        is_decoded: bool = False,
    ) -> None:
        """Start a writer; ``is_decoded`` means that the rows were read from data files.

        ``lineage`` are columns of row lineage; rows must have them after the columns of the table.
        With ``is_sorted=False`` the writer does not sort the rows, and records the sort order
        ``sort_order_id`` for the files. Raise ``InvalidRequestError`` if a table property has an
        invalid value or names the directory of another table, and ``UnsupportedError`` if it names
        another format than Parquet.
        """
        metadata = loaded.metadata
        if metadata.properties.keys() & NEW_DATA_PATHS:
            require_own_data_path(loaded.places, metadata)
        self._places = loaded.places
        fields = (*metadata.schema.fields, *lineage)
        self._schema = replace(metadata.schema, fields=fields)
        spec = metadata.spec_of(metadata.default_spec_id)
        self._splitter = Splitter(spec, self._schema, partition_type(metadata, spec))
        self._order = metadata.sort_order
        self._is_sorted = is_sorted and can_sort(self._order, self._schema)
        self._order_id = self._order.order_id if self._is_sorted else sort_order_id
        self._settings = write_settings(metadata, self._order, self._schema)
        self._given = GivenRows(self._schema, is_decoded=is_decoded)
        self._operation = environment.new_id()
        self._rows = 0
        self._held: dict[_Key, _Held] = {}
        self._held_bytes = 0
        self._open: dict[_Key, DataFile] = {}
        self._uris: list[str] = []
        self._done: list[NewFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; raise ``InvalidRequestError`` if they do not fit the table."""
        numbers = range(self._rows, self._rows + batch.num_rows)
        rows = pa.Table.from_batches([self._given(batch, numbers)], self._given.schema)
        self._rows = numbers.stop
        for part in self._splitter.split(rows):
            self._hold(part)
        while self._held_bytes > _MOST_BYTES:
            self._flush(max(self._held, key=lambda key: self._held[key].bytes))

    def copy(self, files: CopiedFiles) -> None:
        """Add a file of copied row groups; raise ``CannotJoinError`` if a source is damaged."""
        uri = self._new_uri((), files.entries.column("partition").combine_chunks().slice(0, 1))
        try:
            self._done.append(write_copies(self._places, uri, files, self._settings))
        except CannotJoinError:
            delete_files(self._places, [uri])
            raise

    def finish(self) -> pa.Table:
        """Write the remaining rows; return the manifest entries of all files."""
        self.end_files()
        return new_entries(
            self._done, self._splitter.spec.spec_id, self._splitter.partition, self._order_id
        )

    def end_files(self) -> None:
        """Write the remaining rows and close all files; later rows are written to new files."""
        for key in [*self._held]:
            self._flush(key)
        for key in [*self._open]:
            self._close(key)

    def discard(self) -> None:
        """Delete all files that this writer has written."""
        for file in self._open.values():
            file.discard()
        self._open.clear()
        delete_files(self._places, self._uris)

    def _hold(self, part: PartitionedRows) -> None:
        held = self._held.setdefault(part.key, _Held(part.partition))
        held.parts.append(part.rows)
        held.bytes += part.rows.nbytes
        self._held_bytes += part.rows.nbytes
        if held.bytes >= self._settings.row_group_bytes:
            self._flush(part.key)

    def _flush(self, key: _Key) -> None:
        held = self._held.pop(key)
        self._held_bytes -= held.bytes
        rows = pa.concat_tables(held.parts)
        if self._is_sorted:
            rows = sorted_rows(rows, self._order, self._schema)
        for group in _row_groups(rows, held.bytes, self._settings.row_group_bytes):
            file = self._file(key, held.partition)
            file.write(group)
            if file.size >= self._settings.file.target_bytes:
                self._close(key)
        if self._is_sorted and key in self._open:  # rows that come later may sort before these
            self._close(key)

    def _file(self, key: _Key, partition: pa.StructArray) -> DataFile:
        """Return the open file of a partition; open one if there is none.

        If too many files are open, first close the one that was opened first.
        """
        if key not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            uri = self._new_uri(key, partition)
            fields = self._schema.fields
            self._open[key] = DataFile(self._places, uri, partition, fields, self._settings)
        return self._open[key]

    def _new_uri(self, key: _Key, partition: pa.StructArray) -> str:
        name = self._file_name(key, len(self._uris) + 1)
        directory = self._splitter.directory(partition)
        uri = f"{self._settings.data_location}/{directory}{name}"
        self._places.place(uri)  # raises the reason if no file may be written there
        self._uris.append(uri)
        return uri

    def _file_name(self, key: _Key, count: int) -> str:
        return f"00000-0-{self._operation}-{count:05}.parquet"

    def _close(self, key: _Key) -> None:
        self._done.append(self._open[key].close())
        del self._open[key]


def _row_groups(rows: pa.Table, size: int, most: int) -> Iterator[pa.Table]:
    """Yield the rows in groups of about ``most`` bytes.

    ``size`` is the number of bytes of all rows.
    """
    count = max(rows.num_rows * most // max(size, 1), 1)
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count)
