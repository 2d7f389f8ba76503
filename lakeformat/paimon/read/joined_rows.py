# SPDX-License-Identifier: Apache-2.0
"""Reads rows of data-evolution tables: their columns are in several files, joined by row
position.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.row_ranges import deletions_of, is_side_file, refuse_side_file
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.types import DataField

__all__ = ["joined_rows"]

Group = tuple[ManifestEntry, ...]
Fields = tuple[DataField, ...]


def joined_rows(
    schema: TableSchema, files: DataFiles, group: Group, wanted: Fields
) -> Iterator[pa.RecordBatch]:
    """Stream the columns ``wanted`` of the rows that a group of files has in common.

    Each column is read from the newest file that has it. Deleted rows are skipped. Row groups are
    never skipped, so that the rows of all files remain aligned.
    """
    sources = _sources(schema, files, group, wanted)
    streams = [files.rows(entry, fields, with_deleted=True) for entry, fields in sources]
    names = [field.name for _, fields in sources for field in fields]
    keep = files.keep(deletions_of(group))
    start = 0
    for parts in _side_by_side(streams):
        columns = dict(zip(names, (array for part in parts for array in part.columns), strict=True))
        batch = pa.RecordBatch.from_arrays(
            [columns[field.name] for field in wanted], schema=to_arrow_schema(wanted)
        )
        if keep is not None:
            batch = batch.filter(pa.array(keep(start, batch.num_rows)))
        start += parts[0].num_rows
        yield batch


def _sources(
    schema: TableSchema, files: DataFiles, group: Group, wanted: Fields
) -> list[tuple[ManifestEntry, Fields]]:
    """Return the files to read, each with the columns to read from it."""
    stored = [files.stored_ids(entry.file) for entry in group]
    chosen: dict[int, list[DataField]] = {}
    for field in wanted:
        place = next((n for n, ids in enumerate(stored) if field.id in ids), None)
        if place is None or field.name in schema.partition_keys:
            place = 0  # the newest file provides the partition value, or nulls
            _require_nullable(schema, field, group)
        chosen.setdefault(place, []).append(field)
    for place, fields in chosen.items():
        if is_side_file(name := group[place].file.file_name):
            refuse_side_file(name, fields[0].name)
    return [(group[place], tuple(fields)) for place, fields in chosen.items()]


def _require_nullable(schema: TableSchema, field: DataField, group: Group) -> None:
    if not field.type.nullable and field.name not in schema.partition_keys:
        raise CorruptTableError(
            f"column {field.name!r} is NOT NULL, but it is stored neither in "
            f"{group[0].file.file_name} nor in another file of the same rows; restore the "
            "manifest from a backup or roll the table back to an earlier snapshot"
        )


def _side_by_side(streams: list[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield one batch of each stream, all of equal length.

    The stream with the fewest buffered rows decides the length.
    """
    rows = [_JoinedRows(stream) for stream in streams]
    while count := min([each.buffered() for each in rows]):
        yield [each.take(count) for each in rows]


class _JoinedRows:
    """The rows of one file that were read but not yet joined with rows of other files."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch | None = None

    def buffered(self) -> int:
        """Return the number of buffered rows; 0 at the end of the file.

        If no row is buffered, read the next batch first.
        """
        while not self._batch and (batch := next(self._batches, None)) is not None:
            self._batch = batch
        return len(self._batch or ())

    def take(self, count: int) -> pa.RecordBatch:
        assert self._batch is not None
        taken, self._batch = self._batch.slice(0, count), self._batch.slice(count)
        return taken
