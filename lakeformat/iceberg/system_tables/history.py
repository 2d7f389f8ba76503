# SPDX-License-Identifier: Apache-2.0
"""The system tables ``snapshots``, ``history``, ``refs`` and ``metadata_log_entries``."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot

__all__ = ["history", "metadata_log_entries", "references", "snapshots"]

TIME = pa.timestamp("ms", tz="UTC")

_SNAPSHOTS = pa.schema(
    [
        ("committed_at", TIME),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
    ]
)
_HISTORY = pa.schema(
    [
        ("made_current_at", TIME),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("is_current_ancestor", pa.bool_()),
    ]
)
_REFERENCES = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("snapshot_id", pa.int64()),
        ("max_reference_age_in_ms", pa.int64()),
        ("min_snapshots_to_keep", pa.int32()),
        ("max_snapshot_age_in_ms", pa.int64()),
    ]
)
_METADATA_LOG = pa.schema(
    [
        ("timestamp", TIME),
        ("file", pa.string()),
        ("latest_snapshot_id", pa.int64()),
        ("latest_schema_id", pa.int32()),
        ("latest_sequence_number", pa.int64()),
    ]
)


def snapshots(loaded: LoadedMetadata) -> pa.Table:
    """Return all snapshots, including those outside of the main branch."""
    rows = [
        {
            "committed_at": each.timestamp_ms,
            "snapshot_id": each.snapshot_id,
            "parent_id": each.parent_id,
            "operation": each.operation,
            "manifest_list": each.manifest_list,
            "summary": [pair for pair in each.summary.items() if pair[0] != "operation"],
        }
        for each in loaded.metadata.snapshots
    ]
    return pa.Table.from_pylist(rows, schema=_SNAPSHOTS)


def history(loaded: LoadedMetadata) -> pa.Table:
    """Return the snapshots that were current on main, including those that were rolled back."""
    metadata = loaded.metadata
    ancestors = {each.snapshot_id for each in metadata.ancestry(metadata.current_snapshot_id)}
    by_id = {each.snapshot_id: each for each in metadata.snapshots}
    rows = []
    for entry in metadata.snapshot_log:
        snapshot = by_id.get(entry.snapshot_id)
        rows.append(
            {
                "made_current_at": entry.timestamp_ms,
                "snapshot_id": entry.snapshot_id,
                "parent_id": None if snapshot is None else snapshot.parent_id,
                "is_current_ancestor": entry.snapshot_id in ancestors,
            }
        )
    return pa.Table.from_pylist(rows, schema=_HISTORY)


def references(loaded: LoadedMetadata) -> pa.Table:
    """Return the branches and tags with their retention."""
    rows = [
        {
            "name": each.name,
            "type": each.type.upper(),
            "snapshot_id": each.snapshot_id,
            "max_reference_age_in_ms": each.max_ref_age_ms,
            "min_snapshots_to_keep": each.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": each.max_snapshot_age_ms,
        }
        for each in loaded.metadata.references.values()
    ]
    return pa.Table.from_pylist(rows, schema=_REFERENCES)


def metadata_log_entries(loaded: LoadedMetadata) -> pa.Table:
    """Return the metadata files, oldest first; the last one is the current file.

    Each row has the snapshot that was current when the file was written. The columns of the
    snapshot are null if it is unknown or has expired.
    """
    metadata = loaded.metadata
    files = [(each.timestamp_ms, each.metadata_file) for each in metadata.metadata_log]
    rows = []
    for time, file in (*files, (metadata.last_updated_ms, loaded.metadata_file)):
        latest = _current_at(loaded, time)
        rows.append(
            {
                "timestamp": time,
                "file": file,
                "latest_snapshot_id": latest and latest.snapshot_id,
                "latest_schema_id": latest and latest.schema_id,
                "latest_sequence_number": latest and latest.sequence_number,
            }
        )
    return pa.Table.from_pylist(rows, schema=_METADATA_LOG)


def _current_at(loaded: LoadedMetadata, time: int) -> Snapshot | None:
    """Return the snapshot that was current at a time; None if it is unknown or has expired."""
    current = loaded.metadata.current_id_at(time)
    return None if current is None else loaded.metadata.snapshot(current)
