# SPDX-License-Identifier: Apache-2.0
"""Makes the splits of a scan: one for each data file, with the delete files that apply to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pyarrow as pa

from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.delete_index import DeleteIndex, file_format
from lakeformat.iceberg.read.entry_columns import EntryColumns, partition_columns, scopes, spec_of
from lakeformat.iceberg.read.key_ranges import KeyRanges, ranges_of
from lakeformat.iceberg.read.plan import FilePlan, TableState, all_fields
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.types.arrow_memory import array_of

__all__ = ["plan_splits"]

_AT_ONCE = 8192
"""The number of entries that are converted to Python objects at once."""
_FILE_COLUMNS = (
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "sequence_number",
    "first_row_id",
)


def plan_splits(state: TableState, plan: FilePlan) -> list[FileSplit]:
    """Return a split for each data file of a plan, with the deletes that apply to it.

    Raise ``CorruptTableError`` if entries of delete files contradict each other, and
    ``UnsupportedError`` for an unknown file format.
    """
    index = DeleteIndex(all_fields(state.metadata))
    for table in plan.deletes:
        index.add(table, spec_of(state.metadata, table))
    index.sort()
    return [split for table in plan.entries for split in _splits(state, table, index)]


def _splits(state: TableState, entries: pa.Table, index: DeleteIndex) -> Iterator[FileSplit]:
    snapshot_id = None if state.snapshot is None else state.snapshot.snapshot_id
    spec = spec_of(state.metadata, entries)
    if not index.files:
        yield from (FileSplit(snapshot_id, file) for file in _files(spec, entries))
        return
    fields = [index.fields[each] for each in index.key_ids if each in index.fields]
    if fields:
        entries = _by_scope(entries)
    ranges = ranges_of(EntryColumns(entries), fields) if fields else repeat(KeyRanges({}))
    # ``repeat`` never ends.
    per_file = zip(_files(spec, entries), scopes(entries), ranges, strict=False)
    for file, scope, keys in per_file:
        yield FileSplit(snapshot_id, file, index.find(file, scope, keys))


def _files(spec: PartitionSpec, entries: pa.Table) -> Iterator[DataFile]:
    constants = _constants(spec, entries)
    formats: dict[str, FileFormat] = {}
    chosen = entries.select(_FILE_COLUMNS)
    for start in range(0, entries.num_rows, _AT_ONCE):
        columns = [column.to_pylist() for column in chosen.slice(start, _AT_ONCE).columns]
        for path, written, rows, size, number, first_row_id in zip(*columns, strict=True):
            if written not in formats:
                formats[written] = file_format(written, path)
            yield DataFile(
                path,
                formats[written],
                rows if rows >= 0 else None,
                size,
                number,
                first_row_id,
                next(constants),
            )


def _by_scope(entries: pa.Table) -> pa.Table:
    """Return the entries grouped by partition, so that the deletes of a partition are read once."""
    places: dict[str, int] = {}
    order = [places.setdefault(scope, len(places)) for scope in scopes(entries)]
    return entries.take(array_of(np.argsort(np.array(order, np.int64), kind="stable")))


def _constants(
    spec: PartitionSpec, entries: pa.Table
) -> Iterator[tuple[tuple[int, pa.Scalar], ...]]:
    """Yield for each file the partition values of identity transforms, by column id."""
    columns = partition_columns(entries)
    kept = [
        (field.source_id, columns[place])
        for place, field in enumerate(spec.fields)
        if parse_transform(field.transform).kind is TransformKind.IDENTITY
    ]
    if not kept:
        yield from repeat(())
    for row in range(entries.num_rows):
        yield tuple((field_id, values[row]) for field_id, values in kept)
