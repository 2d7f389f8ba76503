# SPDX-License-Identifier: Apache-2.0
"""Merges rows of a primary-key table bucket by bucket, and writes them to level-0 files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakeformat.files.file_format import FileFormat
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_files import KeyValueFiles
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.write.assign import NewFiles, Place, Places, bucket_places, rows_by_place
from lakeformat.paimon.write.group_runs import group_runs
from lakeformat.paimon.write.row_buffer import RowBuffer
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.paimon.write.sorted_rows import SortedRows, part_of, sort_rows
from lakeformat.rows.groups import KeyGroups
from lakeformat.rows.repeated_values import in_full_columns, with_dictionaries
from lakeformat.rows.row_kinds import Kinds
from lakeformat.rows.spill import Spill
from lakeformat.rows.take_rows import take_rows

__all__ = ["KeyValueBuckets"]


@dataclass(slots=True)
class _KeyedFiles:
    files: KeyValueFiles
    writers: list[KeyValueWriter] = field(default_factory=list)
    new: list[DataFileMeta] = field(default_factory=list)
    changelog: list[DataFileMeta] = field(default_factory=list)


class KeyValueBuckets:
    """Buffers the rows of all buckets; a full buffer becomes one sorted run of each bucket.

    Runs are kept in temporary files. They are merged into level-0 files when the writer finishes,
    or earlier if there is no room for more temporary files.
    """

    def __init__(
        self,
        handle: TableHandle,
        sequences: SequenceNumbers,
        place_of: Callable[[int], Place],
        *,
        with_changelog: bool,
    ) -> None:
        """Start with an empty buffer.

        ``place_of`` returns the partition and bucket of a place number. If ``with_changelog`` is
        set and ``changelog-producer`` is ``input``, rows are also written as changelog.
        """
        schema, options = handle.schema, handle.options
        self._handle = handle
        self._sequences = sequences
        self._place_of = place_of
        self._with_changelog = with_changelog and options.changelog_producer == "input"
        self._order = merge_order(schema)
        self._engine = merge_engine(schema)
        self._limit = options.write_buffer_size_bytes
        self._buffer = RowBuffer()
        self._spill = Spill(options)
        self._buckets: dict[int, _KeyedFiles] = {}

    def add(self, rows: pa.RecordBatch, kinds: Kinds, places: Places) -> None:
        """Add rows; ``places`` has the place number of each row's bucket.

        The batch is kept without a copy until the buffer is full.
        """
        self._buffer.add(rows, kinds, places)
        if self._buffer.nbytes >= self._limit:
            self._empty_buffer()

    def finish(self) -> list[NewFiles]:
        """Write the remaining rows, and return the new files of each bucket.

        The buckets are ordered by place number.
        """
        self._flush()
        return [
            NewFiles(self._place_of(number), tuple(bucket.new), tuple(bucket.changelog))
            for number, bucket in sorted(self._buckets.items())
            if bucket.new or bucket.changelog
        ]

    def abort(self) -> None:
        """Remove all files written to the table and all temporary files."""
        self._buffer.clear()
        self._spill.clear()
        for bucket in self._buckets.values():
            for writer in bucket.writers:
                writer.abort()

    def _empty_buffer(self) -> None:
        if self._spill.has_room:
            self._spill_buffer()
        else:
            self._flush()

    def _spill_buffer(self) -> None:
        if (held := self._sorted()) is not None:
            held = replace(held, rows=in_full_columns(held.rows))  # one schema for all runs
            self._spill.add(held.rows.schema, _in_order(held))

    def _flush(self) -> None:
        """Write all buffered rows and all runs in temporary files to level-0 files."""
        if len(self._spill):
            self._spill_buffer()
            with self._spill.opened() as spilled:
                for place in self._spill.places():
                    self._write(place, group_runs(spilled.runs(place), self._order))
            self._spill.clear()
        elif (held := self._sorted()) is not None:
            rows = self._ready_to_move(held.rows)
            for place, groups in held:
                self._write(place, ((rows, part) for part in _parts(groups)))
        self._sequences.end_run()

    def _ready_to_move(self, rows: pa.Table) -> pa.Table:
        """Encode repeating texts outside of the key as dictionaries, which are copied faster.

        For a merge engine other than ``deduplicate``, or a file format other than Parquet, return
        the rows unchanged.
        """
        options = self._handle.options
        formats = [options.of_level(0).file_format]
        if self._with_changelog:
            formats.append(options.of_changelog(0).file_format)
        if isinstance(self._engine, Deduplicate) and {*formats} == {FileFormat.PARQUET.value}:
            return with_dictionaries(rows, self._order.keys)
        return rows

    def _sorted(self) -> SortedRows | None:
        held = self._buffer.take()
        if held is None:
            return None
        by_place = rows_by_place(held.places)
        numbers = self._sequences.number(by_place, self._place_of)
        return sort_rows(held, by_place, self._order, numbers)

    def _write(self, place: int, parts: Iterator[tuple[pa.Table, KeyGroups]]) -> None:
        """Write the merged rows of a bucket to level-0 files, and its unmerged rows as
        changelog.
        """
        bucket = self._bucket(place)
        run = bucket.files.new_run(0)
        bucket.writers.append(run)
        changelog = bucket.files.new_changelog() if self._with_changelog else None
        if changelog is not None:
            bucket.writers.append(changelog)
        for rows, groups in parts:
            if changelog is not None or not isinstance(self._engine, Deduplicate):
                rows = take_rows(rows, groups.order)
                groups = KeyGroups(np.arange(rows.num_rows), groups.starts)
            if changelog is not None:
                _write_table(changelog, rows)
            _write_table(run, self._merged(rows, groups))
        origin = FileOrigin.now(self._handle.schema, self._handle.environment)
        bucket.new += run.finish(origin)
        if changelog is not None:
            bucket.changelog += changelog.finish(origin)

    def _merged(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        """Return one row per key; the row of a key with a single row is unchanged."""
        if len(groups) == len(groups.order):
            return take_rows(rows, groups.order)
        return self._engine.merge(rows, groups)

    def _bucket(self, place: int) -> _KeyedFiles:
        if place not in self._buckets:
            handle, schema = self._handle, self._handle.schema
            directory, external = bucket_places(handle, self._place_of(place))
            self._buckets[place] = _KeyedFiles(
                KeyValueFiles(
                    handle.storage,
                    directory,
                    schema.fields,
                    [field.name for field in schema.key_fields],
                    handle.options,
                    handle.environment.new_id(),
                    external=external,
                )
            )
        return self._buckets[place]


def _in_order(held: SortedRows) -> Iterator[tuple[int, pa.Table]]:
    """Yield the sorted rows of each bucket in parts, with the place number of the bucket.

    Rows of one key are not merged.
    """
    for place, groups in held:
        for part in _parts(groups):
            yield place, take_rows(held.rows, part.order)


def _parts(groups: KeyGroups) -> Iterator[KeyGroups]:
    for first in range(0, len(groups), ROW_GROUP_ROWS):
        yield part_of(groups, first, min(first + ROW_GROUP_ROWS, len(groups)))


def _write_table(writer: KeyValueWriter, rows: pa.Table) -> None:
    for batch in rows.to_batches():
        writer.write(batch)
