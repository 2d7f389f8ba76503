# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of an OVERWRITE snapshot: the deleted rows of all buckets, then the added rows.

An overwrite can move a key to another bucket, so its new row must not precede its deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows, find_deleted_rows
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.row_kinds import DELETE

__all__ = ["overwritten_buckets", "overwritten_rows", "reads_overwrites"]


def reads_overwrites(schema: TableSchema) -> bool:
    """Return True if changes of a table include its overwrites.

    Tables with a primary key need the option ``streaming-read-overwrite``, append tables need
    ``streaming-read-append-overwrite``.
    """
    options = schema.table_options
    if schema.primary_keys:
        return options.streaming_read_overwrite
    return options.streaming_read_append_overwrite


def overwritten_buckets(entries: Sequence[ManifestEntry]) -> list[tuple[ManifestEntry, ...]]:
    """Return the deleted files of each bucket, then the added files of each bucket.

    ``entries`` are those of an OVERWRITE snapshot. A file that was both deleted and added again is
    left out.
    """
    buckets: dict[tuple[bytes, int], dict[tuple[object, ...], ManifestEntry]] = {}
    for entry in entries:
        place = buckets.setdefault((entry.partition, entry.bucket), {})
        before = place.pop(entry.identity, None)
        if before is None or before.kind is entry.kind:
            place[entry.identity] = entry
    groups = (
        tuple(entry for entry in place.values() if entry.kind is kind)
        for kind in (FileKind.DELETE, FileKind.ADD)
        for place in buckets.values()
    )
    return [group for group in groups if group]


def overwritten_rows(
    handle: TableHandle, snapshot: Snapshot, entries: Sequence[ManifestEntry], asked: ChangedRows
) -> Iterator[pa.RecordBatch]:
    """Stream the changes of the deleted or the added files ``entries`` of one bucket.

    In a primary-key table, rows of deleted files are ``-D``, rows of added files ``+I`` or ``+U``.
    """
    if entries[0].kind is FileKind.ADD:
        yield from map(asked.of_stored, _merged(handle, snapshot, entries, asked, hides=True))
        return
    before = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id - 1)
    for batch in _merged(handle, before or snapshot, entries, asked, hides=before is not None):
        kinds = pa.repeat(pa.scalar(DELETE, pa.int8()), batch.num_rows)
        at = batch.schema.get_field_index(VALUE_KIND.name)
        yield asked.of_stored(batch.set_column(at, batch.schema.field(at), kinds))


def _merged(
    handle: TableHandle,
    snapshot: Snapshot,
    entries: Sequence[ManifestEntry],
    asked: ChangedRows,
    *,
    hides: bool,
) -> Iterator[pa.RecordBatch]:
    """Stream the merged rows of the files ``entries``.

    If ``hides`` is True, skip the rows that deletion vectors delete.
    """
    deleted = find_deleted_rows(handle, snapshot) if hides else DeletedRows(handle, ())
    merged = MergedRowsWithKind(handle.schema, DataFiles(handle, snapshot, deleted), asked.fields)
    return merged.read(entries, keep_retracts=False)
