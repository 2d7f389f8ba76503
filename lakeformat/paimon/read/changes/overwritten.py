# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of an OVERWRITE snapshot: the deleted rows of all buckets, then the added rows.

An overwrite can move a key to another bucket. So the new row of the key must not precede the
deletion of its old row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import CorruptTableError, LakeError, SnapshotExpiredError
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.expiry_race import is_of_missing_file
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    read_snapshot,
    read_snapshot_if_present,
)
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows, find_deleted_rows, find_vectors
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.paimon.read.postponed_rows import postponed_partitions
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.row_kinds import DELETE

__all__ = ["overwritten_buckets", "overwritten_rows", "reads_overwrites", "with_kept_files"]


def reads_overwrites(schema: TableSchema) -> bool:
    """Return True if changes of a table include its overwrites.

    Tables with a primary key need the option ``streaming-read-overwrite``, append tables need
    ``streaming-read-append-overwrite``.
    """
    options = schema.table_options
    if schema.primary_keys:
        return options.streaming_read_overwrite
    return options.streaming_read_append_overwrite


def with_kept_files(
    handle: TableHandle,
    snapshot: Snapshot,
    changed: Sequence[ManifestEntry],
    live_files: Callable[[Collection[bytes]], Iterable[ManifestEntry]],
) -> list[ManifestEntry]:
    """Return the entries of the files to read for the changes of an OVERWRITE snapshot.

    ``changed`` are the entries that the snapshot committed. A file that it deleted and added again
    counts as kept. Kept files in changed buckets are read, too, because a rollback can change which
    of their rows are visible. Each kept file is returned twice: as a DELETE and as an ADD entry. A
    bucket also counts as changed if its deletion vectors changed.

    ``live_files`` returns the live files of the given partitions in this snapshot.
    """
    left = _unpaired(changed)
    before = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id - 1)
    places = {(entry.partition, entry.bucket) for entry in left}
    places |= _with_other_vectors(handle, before, snapshot)
    added = {entry.identity for entry in left if entry.kind is FileKind.ADD}
    live = live_files({partition for partition, _ in places})
    kept = [entry for entry in live if entry.identity not in added]
    postponed = postponed_partitions([*left, *kept])
    kept = [
        entry
        for entry in kept
        if entry.partition in postponed or (entry.partition, entry.bucket) in places
    ]
    if before is None and snapshot.id > FIRST_SNAPSHOT_ID and (kept or not left):
        _require_no_vectors(handle, snapshot.id - 1)
    # Postponed rows are merged in the order of their files.
    return [*(replace(entry, kind=FileKind.DELETE) for entry in kept), *kept, *left]


def overwritten_buckets(entries: Sequence[ManifestEntry]) -> list[tuple[ManifestEntry, ...]]:
    """Return the deleted files of each bucket, then the added files of each bucket.

    ``entries`` is the result of ``with_kept_files``. A partition with postponed rows counts as one
    bucket, because these rows may have any key.
    """
    postponed = postponed_partitions(entries)
    buckets: dict[tuple[FileKind, bytes, int], list[ManifestEntry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.kind is FileKind.ADD):
        bucket = POSTPONE_BUCKET if entry.partition in postponed else entry.bucket
        buckets.setdefault((entry.kind, entry.partition, bucket), []).append(entry)
    return [*map(tuple, buckets.values())]


def _require_no_vectors(handle: TableHandle, expired: int) -> None:
    """Raise NotFoundError if the table uses deletion vectors.

    The snapshot with the number ``expired`` has expired, so its deletion vectors cannot be read.
    """
    if handle.options.deletion_vectors_enabled:
        read_snapshot(handle.storage, handle.layout, expired)


def _unpaired(changed: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    found: dict[tuple[object, ...], ManifestEntry] = {}
    for entry in changed:
        before = found.pop(entry.identity, None)
        if before is None or before.kind is entry.kind:
            found[entry.identity] = entry
    return [*found.values()]


def _with_other_vectors(
    handle: TableHandle, before: Snapshot | None, after: Snapshot
) -> set[tuple[bytes, int]]:
    """Return the buckets whose deletion vectors differ in two snapshots."""
    if before is None or before.index_manifest == after.index_manifest:
        return set()
    old, new = find_vectors(handle, before), find_vectors(handle, after)
    return {place for place in old.keys() | new.keys() if old.get(place) != new.get(place)}


def overwritten_rows(
    handle: TableHandle, snapshot: Snapshot, entries: Sequence[ManifestEntry], asked: ChangedRows
) -> Iterator[pa.RecordBatch]:
    """Stream the changes of one bucket, from its deleted files or from its added files.

    ``entries`` are these files. In a primary-key table, rows of deleted files are ``-D``, and rows
    of added files are ``+I`` or ``+U``.
    """
    if entries[0].kind is FileKind.ADD:
        yield from map(asked.of_stored, _merged(handle, snapshot, entries, asked, hides=True))
        return
    with _explaining_earlier_rows(handle, snapshot):
        before = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id - 1)
        for batch in _merged(handle, before or snapshot, entries, asked, hides=before is not None):
            kinds = pa.repeat(pa.scalar(DELETE, pa.int8()), batch.num_rows)
            at = batch.schema.get_field_index(VALUE_KIND.name)
            yield asked.of_stored(batch.set_column(at, batch.schema.field(at), kinds))


@contextmanager
def _explaining_earlier_rows(handle: TableHandle, snapshot: Snapshot) -> Iterator[None]:
    """Raise an error that advises a full read if a file with the overwritten rows is missing.

    The error is SnapshotExpiredError if the preceding snapshot has expired, otherwise
    CorruptTableError.
    """
    try:
        yield
    except CorruptTableError as missing:
        if not is_of_missing_file(missing):
            raise
        number = snapshot.id - 1
        before = read_snapshot_if_present(handle.storage, handle.layout, number)
        error: type[LakeError]
        error, why = SnapshotExpiredError, f"snapshot {number} has expired"
        if before is not None:
            error, why = CorruptTableError, f"a file of snapshot {number} is missing"
        raise error(
            f"the changes of the overwrite in snapshot {snapshot.id} of {handle.uri} need the "
            f"earlier rows, but {why}. Read the whole table once: if the reader has a consumer, "
            "delete it with table.consumers.reset(NAME), then start the stream again with a full "
            f"read. First error: {missing}"
        ) from missing


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
