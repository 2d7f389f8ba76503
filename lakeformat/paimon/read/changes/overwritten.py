# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of an OVERWRITE snapshot, bucket by bucket: deleted rows first, then added
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows, find_deleted_rows
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.rows.row_kinds import DELETE

__all__ = ["overwritten_buckets", "overwritten_rows", "reads_overwrites"]


def reads_overwrites(handle: TableHandle) -> Callable[[Snapshot], bool]:
    """Return a function that returns True for an OVERWRITE snapshot whose changes are read.

    Tables with a primary key need the option ``streaming-read-overwrite``, append tables need
    ``streaming-read-append-overwrite``. Without the option, the function always returns False.
    """
    options = handle.options
    if handle.schema.primary_keys:
        is_asked = options.streaming_read_overwrite
    else:
        is_asked = options.streaming_read_append_overwrite
    return lambda snapshot: is_asked and snapshot.commit_kind is CommitKind.OVERWRITE


def overwritten_buckets(entries: Sequence[ManifestEntry]) -> list[tuple[ManifestEntry, ...]]:
    """Group the entries of an OVERWRITE snapshot by partition and bucket.

    A file that was both deleted and added again is left out.
    """
    buckets: dict[tuple[bytes, int], dict[tuple[object, ...], ManifestEntry]] = {}
    for entry in entries:
        place = buckets.setdefault((entry.partition, entry.bucket), {})
        before = place.pop(entry.identity, None)
        if before is None or before.kind is entry.kind:
            place[entry.identity] = entry
    return [tuple(place.values()) for place in buckets.values() if place]


def overwritten_rows(
    handle: TableHandle, snapshot: Snapshot, entries: Sequence[ManifestEntry], asked: ChangedRows
) -> Iterator[pa.RecordBatch]:
    """Stream the changes of one bucket of a primary-key table: ``-D`` for rows of deleted files,
    ``+I`` or ``+U`` for rows of added files.
    """
    gone = [entry for entry in entries if entry.kind is FileKind.DELETE]
    come = [entry for entry in entries if entry.kind is FileKind.ADD]
    before = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id - 1)
    if gone:
        for batch in _merged(handle, before or snapshot, gone, asked, hides=before is not None):
            kinds = pa.repeat(pa.scalar(DELETE, pa.int8()), batch.num_rows)
            at = batch.schema.get_field_index(VALUE_KIND.name)
            yield asked.of_stored(batch.set_column(at, batch.schema.field(at), kinds))
    if come:
        yield from map(asked.of_stored, _merged(handle, snapshot, come, asked, hides=True))


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
