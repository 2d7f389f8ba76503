# SPDX-License-Identifier: Apache-2.0
"""Compacts files of an append table: copies their rows into larger files, in order or sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.paimon.datafile.rolling_writer import RollingWriter, WrittenFile
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import deleted_rows_of
from lakeformat.paimon.write.assign import Place, bucket_places
from lakeformat.rows.range_sort import sorted_batches

__all__ = ["compact_append_files"]


def compact_append_files(handle: TableHandle, unit: CompactUnit) -> CommitMessage:
    """Copy the rows that are not deleted into new files; return the message to commit.

    If reading or writing fails, the new files are deleted.
    """
    directory, external = bucket_places(handle, Place(unit.partition, unit.bucket))
    names = DataFileNames(handle.options, handle.environment.new_id())
    rows = DataFiles(handle, unit.snapshot, deleted_rows_of(handle, unit.snapshot, unit.vectors))
    fields = handle.schema.fields
    writer = RollingWriter(
        handle.storage, directory, fields, handle.options, names.next_data, external=external
    )
    try:
        for batch in _batches(handle, unit, rows):
            writer.write(batch)
        written = writer.finish()
    except BaseException:
        writer.abort()
        raise
    return replace(
        unit.message(handle, _described(handle, unit, written)),
        # The unit has every data file that these index files name, so their vectors are not needed
        # any more.
        compact_deleted_index_files=unit.vectors,
    )


def _batches(handle: TableHandle, unit: CompactUnit, files: DataFiles) -> Iterator[pa.RecordBatch]:
    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        fields = tuple(field for field in handle.schema.fields if field.name in names)
        return (batch for entry in unit.files for batch in files.rows(entry, fields))

    rows = read(handle.schema.column_names)
    if unit.order is None:
        return rows
    return sorted_batches(rows, read, unit.rows, unit.order, handle.options)


def _described(
    handle: TableHandle, unit: CompactUnit, written: list[WrittenFile]
) -> list[DataFileMeta]:
    """Return the metadata of the new files.

    Their sequence numbers begin with the smallest sequence number in the unit's old files.
    """
    origin = FileOrigin.now(handle.schema, handle.environment, FileSource.COMPACT)
    number = min(entry.file.min_sequence_number for entry in unit.files)
    made = []
    for file in written:
        made.append(
            describe_append_file(
                file,
                handle.schema.fields,
                origin,
                first_sequence_number=number,
                dense=handle.options.statistics_dense_store,
            )
        )
        number += file.row_count
    return made
