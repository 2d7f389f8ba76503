# SPDX-License-Identifier: Apache-2.0
"""Postponed buckets: rows are written unmerged, and a compaction assigns their buckets later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.file_format import FileFormat
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_order import Keys
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema_changes.format_rules import require_format_holds
from lakeformat.paimon.write.assign import NewFiles, Place, Places, bucket_places, rows_by_place
from lakeformat.paimon.write.row_buffer import RowBuffer
from lakeformat.rows.row_kinds import Kinds

__all__ = ["PostponedBuckets"]

_NO_NUMBER = -1
"""The sequence number of rows that get their real number in a compaction."""


class PostponedBuckets:
    """Buffers the rows of one writer and writes them partition by partition.

    All files of a writer have one prefix in their names. The compaction reads the files of a prefix
    by ascending file number, so that rows keep their order of arrival.
    """

    def __init__(self, handle: TableHandle, place_of: Callable[[int], Place]) -> None:
        unique = handle.environment.new_id
        self._handle = handle
        self._place_of = place_of
        self._options = _options(handle, f"data--u-{unique()}-s-0-w-")
        self._names = DataFileNames(self._options, unique())
        self._buffer = RowBuffer()
        self._open: dict[int, KeyValueWriter] = {}
        self._started: list[KeyValueWriter] = []
        self._files: dict[int, list[DataFileMeta]] = {}

    def add(self, rows: pa.RecordBatch, kinds: Kinds, places: Places) -> None:
        """Add rows; they are written when the buffer is full."""
        self._buffer.add(rows, kinds, places)
        if self._buffer.nbytes >= self._handle.options.write_buffer_size_bytes:
            self._empty_buffer()

    def finish(self) -> list[NewFiles]:
        """Write the remaining rows; return the files of each partition."""
        self._empty_buffer()
        self._close()
        return [
            NewFiles(self._place_of(number), tuple(files))
            for number, files in sorted(self._files.items())
        ]

    def abort(self) -> None:
        """Remove all files written so far."""
        self._buffer.clear()
        for writer in self._started:
            writer.abort()

    def _empty_buffer(self) -> None:
        held = self._buffer.take()
        if held is None:
            return
        numbers = pa.array(np.full(len(held.kinds), _NO_NUMBER, np.int64))
        kinds = pa.array(held.kinds)
        columns = [numbers, kinds, *(c.combine_chunks() for c in held.rows.columns)]
        names = [SEQUENCE_NUMBER.name, VALUE_KIND.name, *held.rows.column_names]
        rows = pa.RecordBatch.from_arrays(columns, names=names)
        for place, positions in rows_by_place(held.places):
            self._writer(place).write(rows.take(pa.array(positions)))
        # An open file has a row group in memory. So with many partitions, all files are closed.
        if len(self._open) > self._handle.options.write_max_writers_to_spill:
            self._close()

    def _writer(self, place: int) -> KeyValueWriter:
        if place not in self._open:
            handle, schema = self._handle, self._handle.schema
            directory, external = bucket_places(handle, self._place_of(place))
            self._open[place] = KeyValueWriter(
                handle.storage,
                directory,
                schema.fields,
                [field.name for field in schema.key_fields],
                self._options,
                self._names.next_data,
                keys=Keys.ANY,
                external=external,
            )
            self._started.append(self._open[place])
        return self._open[place]

    def _close(self) -> None:
        origin = FileOrigin.now(self._handle.schema, self._handle.environment)
        for place, writer in self._open.items():
            self._files.setdefault(place, []).extend(writer.finish(origin))
        self._open = {}


def _options(handle: TableHandle, prefix: str) -> TableOptions:
    """Return the options for files of postponed rows: Avro, without statistics.

    If Avro cannot store the type of a column, the files have the format of the table instead.
    """
    options = handle.options.of_postponed(prefix, FileFormat.AVRO.value)
    try:
        require_format_holds(handle.schema.fields, options)
    except InvalidRequestError:
        return handle.options.of_postponed(prefix, handle.options.file_format)
    return options
