# SPDX-License-Identifier: Apache-2.0
"""The system tables ``files``, ``entries`` and ``partitions`` of one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import (
    DATA,
    DELETED,
    EQUALITY_DELETES,
    POSITION_DELETES,
    PUFFIN,
    entry_schema,
    live_entries,
    read_entries,
)
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.system_tables.history import TIME
from lakeformat.iceberg.system_tables.readable_metrics import readable_metrics
from lakeformat.iceberg.system_tables.unified_partition import unified_partition, unified_type

__all__ = ["entries", "files", "partition_counts", "partitions"]

_OF_ENTRY = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_FIRST = ("content", "file_path", "file_format", "spec_id", "partition")


def files(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    """Return the live data files and delete files of a snapshot; no rows without a snapshot."""
    return _files(loaded, live_entries(_all_entries(loaded, snapshot)))


def entries(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    """Return the entries of all manifests of a snapshot, including those of deleted files.

    There are no rows if ``snapshot`` is None.
    """
    found = _all_entries(loaded, snapshot)
    shown = _files(loaded, found)
    inside = shown.drop_columns(["readable_metrics"])
    columns = [found.column(name) for name in _OF_ENTRY]
    return pa.table(
        [*columns, inside.to_struct_array(), shown.column("readable_metrics")],
        [*_OF_ENTRY, "data_file", "readable_metrics"],
    )


def partitions(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    """Return one row for each partition with live files: its counts and its newest change.

    Partitions of two specs have separate rows.

    All files of a table without partitions are one row. ``snapshot=None`` gives no rows.
    """
    found = _counted(loaded, live_entries(_all_entries(loaded, snapshot)))
    found = found.drop_columns(["dv_count"])
    as_time = found.column("last_updated_at").cast(TIME)
    place = found.schema.get_field_index("last_updated_at")
    found = found.set_column(place, "last_updated_at", as_time)
    return found if unified_type(loaded.metadata).fields else found.drop_columns(["spec_id"])


def partition_counts(loaded: LoadedMetadata, snapshot: Snapshot) -> pa.Table:
    """Return the counts of each partition, with the column names of partition statistics files.

    Deletion vectors are counted in ``dv_count``, not as position delete files. A removed file is
    not counted, but its removal can be the last change of its partition.
    """
    found = _counted(loaded, _all_entries(loaded, snapshot))
    files = pc.subtract(found.column("position_delete_file_count"), found.column("dv_count"))
    place = found.schema.get_field_index("position_delete_file_count")
    names = {"record_count": "data_record_count", "file_count": "data_file_count"}
    found = found.set_column(place, "position_delete_file_count", files)
    return found.rename_columns([names.get(each, each) for each in found.column_names])


def _counted(loaded: LoadedMetadata, found: pa.Table) -> pa.Table:
    """Return a row for each partition of each spec: sums over its live files, and its last change.

    The last change is the id and the time of the newest snapshot in the entries ``found``. Both are
    null if all these snapshots have expired.
    """
    is_partitioned = bool(unified_type(loaded.metadata).fields)
    partition = found.column("partition").combine_chunks()
    parts = partition.flatten() if is_partitioned else []
    keys = [*(f"partition.{place}" for place in range(len(parts))), "spec_id"]
    # If the snapshot of a change has expired, its time and its id are not shown.
    times = {each.snapshot_id: each.timestamp_ms for each in loaded.metadata.snapshots}
    ids = [each if each in times else None for each in found.column("snapshot_id").to_pylist()]
    committed = [None if each is None else times[each] for each in ids]
    table = pa.table(
        [*parts, found.column("spec_id"), *_sums(found), _longs(ids), _longs(committed)],
        [*keys, *_SUMS, "snapshot_id", "committed"],
    )
    # Within a group, the first entry is that of the newest snapshot.
    table = table.sort_by([("committed", "descending")])
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [*((name, "sum") for name in _SUMS), ("snapshot_id", "first"), ("committed", "first")]
    )
    return _shown_partitions(grouped, partition.type if is_partitioned else None)


_SUMS = {
    "record_count": pa.int64(),
    "file_count": pa.int32(),
    "total_data_file_size_in_bytes": pa.int64(),
    "position_delete_record_count": pa.int64(),
    "position_delete_file_count": pa.int32(),
    "equality_delete_record_count": pa.int64(),
    "equality_delete_file_count": pa.int32(),
    "dv_count": pa.int32(),
}


def _sums(found: pa.Table) -> list[pa.Array]:
    """Return the columns of ``_SUMS``; a file adds 0 to the columns of other kinds of files."""
    rows, sizes = found.column("record_count"), found.column("file_size_in_bytes")
    is_live = pc.not_equal(found.column("status"), DELETED)
    columns = []
    for content in (DATA, POSITION_DELETES, EQUALITY_DELETES):
        is_counted = pc.and_(pc.equal(found.column("content"), content), is_live)
        ones = is_counted.cast(pa.int64())
        columns += [pc.multiply(rows, ones), ones]
        if content == DATA:
            columns.append(pc.multiply(sizes, ones))
    is_vector = pc.and_(pc.equal(found.column("file_format"), PUFFIN), is_live)
    return [*columns, is_vector.cast(pa.int64())]


def _longs(values: Sequence[int | None]) -> pa.Array:
    return pa.array(values, pa.int64())


def _shown_partitions(grouped: pa.Table, partition: pa.StructType | None) -> pa.Table:
    shown = {name: grouped.column(f"{name}_sum").cast(kind) for name, kind in _SUMS.items()}
    shown["last_updated_at"] = grouped.column("committed_first")
    shown["last_updated_snapshot_id"] = grouped.column("snapshot_id_first")
    shown = {"spec_id": grouped.column("spec_id"), **shown}
    if partition is None:
        return pa.table(shown)
    values = [
        grouped.column(f"partition.{place}").combine_chunks() for place in range(len(partition))
    ]
    tuples = pa.StructArray.from_arrays(values, fields=list(partition))
    return pa.table({"partition": tuples, **shown})


def _all_entries(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    """Return all entries of a snapshot; ``partition`` has the fields of all partition specs."""
    metadata = loaded.metadata
    manifests = read_manifest_list(loaded.places, snapshot) if snapshot is not None else None
    by_spec = {} if manifests is None else read_entries(loaded.places, metadata, manifests)
    if not by_spec:
        nothing = partition_type(metadata, metadata.spec_of(metadata.default_spec_id))
        by_spec = {metadata.default_spec_id: entry_schema(nothing).empty_table()}
    parts = []
    for spec_id, found in by_spec.items():
        column = unified_partition(found, metadata, metadata.spec_of(spec_id))
        place = found.schema.get_field_index("partition")
        parts.append(found.set_column(place, "partition", column))
    return pa.concat_tables(parts)


def _files(loaded: LoadedMetadata, found: pa.Table) -> pa.Table:
    names = [*_FIRST, *(name for name in found.column_names if name not in (*_OF_ENTRY, *_FIRST))]
    if not unified_type(loaded.metadata).fields:
        names.remove("partition")
    shown = found.select(names)
    return shown.append_column("readable_metrics", readable_metrics(found, loaded.metadata.schema))
