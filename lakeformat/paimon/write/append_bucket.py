# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of an append table to files, in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from lakeformat.paimon.datafile.external_paths import ExternalPaths
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.write.assign import NewFiles, Place, Places, bucket_places, rows_by_place
from lakeformat.paimon.write.row_buffer import RowBuffer
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.row_kinds import Kinds
from lakeformat.rows.spill import Spill

__all__ = ["AppendBuckets"]

Rows: TypeAlias = pa.RecordBatch | pa.Table


@dataclass(slots=True)
class _AppendFiles:
    directory: str
    external: ExternalPaths | None
    names: DataFileNames
    open: RollingWriter | None = None
    """The open writer to which further rows are added; None if all files are closed."""
    writers: list[RollingWriter] = field(default_factory=list)


class AppendBuckets:
    """Writes the rows of all buckets of an append table.

    Up to ``write-max-writers-to-spill`` buckets have an open file each. With more buckets, or with
    ``write-buffer-for-append``, rows are first buffered in memory and in temporary files.
    """

    def __init__(
        self,
        handle: TableHandle,
        sequences: SequenceNumbers,
        place_of: Callable[[int], Place],
    ) -> None:
        options = handle.options
        self._handle = handle
        self._sequences = sequences
        self._place_of = place_of
        self._limit = options.write_buffer_size_bytes
        self._is_buffered = options.write_buffer_for_append
        self._max_open = max(options.write_max_writers_to_spill, 1)
        self._buckets: dict[int, _AppendFiles] = {}

    def add(self, rows: pa.RecordBatch, kinds: Kinds, places: Places) -> None:
        """Add rows, which keep their order in each bucket.

        ``places`` has the place number of each row's bucket.
        """
        if not self._is_buffered:
            parts = [*_by_place(rows, places)]
            known = self._buckets.keys() | {place for place, _ in parts}
            if len(known) <= self._max_open:
                self._write_through(parts)
                return
            self._is_buffered = True
        self._buffer.add(rows, kinds, places)
        if self._buffer.nbytes >= self._limit:
            self._empty_buffer()

    def finish(self) -> list[NewFiles]:
        """Write the remaining rows, and return the new files of each bucket.

        The buckets are ordered by place number.
        """
        if self._is_buffered:
            self._flush()
        return [
            NewFiles(self._place_of(number), files)
            for number, bucket in sorted(self._buckets.items())
            if (files := self._describe(self._place_of(number), bucket))
        ]

    def abort(self) -> None:
        """Remove all files written to the table and all temporary files."""
        if self._is_buffered:
            self._buffer.clear()
            self._spill.clear()
        for bucket in self._buckets.values():
            for writer in bucket.writers:
                writer.abort()

    @cached_property
    def _buffer(self) -> RowBuffer:
        return RowBuffer()

    @cached_property
    def _spill(self) -> Spill:
        return Spill(self._handle.options)

    def _write_through(self, parts: list[tuple[int, Rows]]) -> None:
        self._look_up([place for place, _ in parts])
        for place, rows in parts:
            bucket = self._bucket(place)
            bucket.open = bucket.open or self._new_writer(bucket)
            for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
                bucket.open.write(batch)

    def _empty_buffer(self) -> None:
        if self._spill.has_room:
            self._spill_buffer()
        else:
            self._flush()

    def _spill_buffer(self) -> None:
        if (held := self._buffer.take()) is not None:
            parts = [*_by_place(held.rows, held.places)]
            self._look_up([place for place, _ in parts])
            self._spill.add(held.rows.schema, parts)

    def _flush(self) -> None:
        if len(self._spill):
            self._spill_buffer()
            with self._spill.opened() as spilled:
                for place in self._spill.places():
                    self._write(place, (batch for run in spilled.runs(place) for batch in run))
            self._spill.clear()
        elif (held := self._buffer.take()) is not None:
            parts = [*_by_place(held.rows, held.places)]
            self._look_up([place for place, _ in parts])
            for place, rows in parts:
                self._write(place, iter(rows.to_batches()))

    def _write(self, place: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Add rows to the bucket's open file.

        If no file is open, write new files and close them.
        """
        bucket = self._bucket(place)
        writer = bucket.open or self._new_writer(bucket)
        for batch in batches:
            writer.write(batch)
        if bucket.open is None:
            writer.finish()

    def _look_up(self, places: list[int]) -> None:
        new = [self._place_of(place) for place in places if place not in self._buckets]
        self._sequences.look_up(new)

    def _describe(self, place: Place, bucket: _AppendFiles) -> tuple[DataFileMeta, ...]:
        schema, options = self._handle.schema, self._handle.options
        origin = FileOrigin.now(schema, self._handle.environment)
        joins = options.data_evolution_enabled
        return tuple(
            describe_append_file(
                file,
                schema.fields,
                origin,
                # A commit replaces the sequence number 0 by its snapshot number. To replace a
                # column, a later file needs a larger number.
                first_sequence_number=0 if joins else self._sequences.take(place, file.row_count),
                dense=options.statistics_dense_store,
            )
            for writer in bucket.writers
            for file in writer.finish()
        )

    def _bucket(self, place: int) -> _AppendFiles:
        if place not in self._buckets:
            directory, external = bucket_places(self._handle, self._place_of(place))
            names = DataFileNames(self._handle.options, self._handle.environment.new_id())
            self._buckets[place] = _AppendFiles(directory, external, names)
        return self._buckets[place]

    def _new_writer(self, bucket: _AppendFiles) -> RollingWriter:
        writer = RollingWriter(
            self._handle.storage,
            bucket.directory,
            self._handle.schema.fields,
            self._handle.options,
            bucket.names.next_data,
            external=bucket.external,
        )
        bucket.writers.append(writer)
        return writer


def _by_place(rows: Rows, places: Places) -> Iterator[tuple[int, Rows]]:
    """Yield each place number with its rows, which keep their order.

    All rows are copied in one step.
    """
    by_place = rows_by_place(places)
    if len(by_place.places) > 1:
        rows = rows.take(pa.array(by_place.order))
    start = 0
    for place, positions in by_place:
        yield place, rows.slice(start, len(positions))
        start += len(positions)
