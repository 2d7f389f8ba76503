"""Sorted runs of the keyed table of ``tests.paper``, as real files: written, read and merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.types.arrow_types import to_arrow_schema

INSERT, DELETE = 0, 3
BUCKETS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One version of a row; ``note`` is None for a deletion."""

    dt: str
    id: int
    sequence: int
    note: str | None


def bucket_of(handle: TableHandle, number: int) -> int:
    """By the table's own bucket function."""
    [key] = handle.schema.key_fields
    function = bucket_function("default", [key.type], BUCKETS)
    return int(function([pa.array([number], pa.int32())])[0])


def partition_of(handle: TableHandle, dt: str) -> bytes:
    """A partition as messages name it."""
    types = [field.type for field in partition_fields(handle.schema)]
    return frame_row(encode_row((dt,), types), len(types))


def write_run(
    handle: TableHandle, rows: Sequence[Row], *, bucket: int, level: int = 0
) -> tuple[DataFileMeta, ...]:
    """One sorted run of rows with different keys in one bucket of one partition."""
    ordered = sorted(rows, key=lambda row: row.id)
    stored = to_arrow_schema((SEQUENCE_NUMBER, VALUE_KIND, *handle.schema.fields))
    columns = {
        SEQUENCE_NUMBER.name: [row.sequence for row in ordered],
        VALUE_KIND.name: [DELETE if row.note is None else INSERT for row in ordered],
        "id": [row.id for row in ordered],
        "note": [row.note for row in ordered],
        "dt": [row.dt for row in ordered],
    }
    partition = partition_path(handle.schema, partition_of(handle, rows[0].dt))
    writer = KeyValueWriter(
        handle.storage,
        handle.layout.bucket_directory(bucket, partition),
        handle.schema.fields,
        ["id"],
        handle.options,
        DataFileNames(handle.options, handle.environment.new_id()).next_data,
    )
    for batch in pa.table(columns, schema=stored).to_batches():
        writer.write(batch)
    source = FileSource.COMPACT if level else FileSource.APPEND
    return tuple(writer.finish(FileOrigin(0, datetime(2024, 1, 1), source=source, level=level)))


def merged_rows(handle: TableHandle, read: Snapshot, entries: Iterable[ManifestEntry]) -> list[Row]:
    """The last version of each row in some files; deletions are kept, as older files may follow."""
    files, last = DataFiles(handle, read, DeletedRows(handle, ())), {}
    for entry in entries:
        for batch in files.key_values(entry, handle.schema.fields):
            for each in batch.to_pylist():
                sequence = each[SEQUENCE_NUMBER.name]
                note = None if each[VALUE_KIND.name] == DELETE else each["note"]
                found = Row(each["dt"], each["id"], sequence, note)
                if found.id not in last or last[found.id].sequence < sequence:
                    last[found.id] = found
    return list(last.values())
