"""Deletes of rows, as other engines publish them: files of positions, of keys, and vectors."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm, encode_deletion_vector
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import (
    ADDED,
    EQUALITY_DELETES,
    POSITION_DELETES,
    entry_schema,
)
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.write.counts import FileCounts
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change

__all__ = ["delete_by_key", "delete_by_position", "delete_by_vector"]


def delete_by_key(
    handle: TableHandle, *ids: int, partition: dict[str, Any] | None = None, spec_id: int = 0
) -> None:
    """Publish an equality delete by the column ``id``."""
    content = _parquet({"id": (1, pa.array(ids, pa.int64()))})
    members = {
        "content": EQUALITY_DELETES,
        "equality_ids": [1],
        "record_count": len(ids),
        "value_counts": [(1, len(ids))],
        "null_value_counts": [(1, 0)],
        "lower_bounds": [(1, min(ids).to_bytes(8, "little"))],
        "upper_bounds": [(1, max(ids).to_bytes(8, "little"))],
    }
    _publish(handle, content, members, partition or {}, spec_id)


def delete_by_position(handle: TableHandle, path: str, *positions: int, **more: Any) -> None:
    """Publish a delete of rows of one file; it has no bounds, so it may be of any file."""
    columns = {
        "file_path": (2_147_483_546, pa.array([path] * len(positions), pa.string())),
        "pos": (2_147_483_545, pa.array(positions, pa.int64())),
    }
    members = {"content": POSITION_DELETES, "record_count": len(positions), **more}
    _publish(handle, _parquet(columns), members, {}, 0)


def delete_by_vector(handle: TableHandle, path: str, *positions: int) -> None:
    """Publish a deletion vector of one file."""
    vector = DeletionVector.of(positions)
    content = b"PFA1" + encode_deletion_vector(vector, VectorForm.BITMAP64)[0]
    members = {
        "content": POSITION_DELETES,
        "record_count": len(positions),
        "file_format": "PUFFIN",
        "referenced_data_file": path,
        "content_offset": 4,
        "content_size_in_bytes": len(content) - 4,
    }
    _publish(handle, content, members, {}, 0)


def _parquet(columns: dict[str, tuple[int, pa.Array]]) -> bytes:
    fields = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(field_id)})
        for name, (field_id, values) in columns.items()
    ]
    stream = io.BytesIO()
    arrays = [values for _, values in columns.values()]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), stream)
    return stream.getvalue()


def _publish(
    handle: TableHandle,
    content: bytes,
    members: dict[str, Any],
    partition: dict[str, Any],
    spec_id: int,
) -> None:
    loaded = handle.load()
    number = len(loaded.metadata.snapshots)
    uri = f"{loaded.metadata.location}/data/deletes-{number}.parquet"
    storage, path = loaded.places.place(uri)
    storage.overwrite(path, content)

    def produce(base: Base) -> FileChange:
        metadata = base.loaded.metadata
        spec = metadata.spec_of(spec_id)
        writer = ManifestWriter(metadata, spec, of_deletes=True)
        row = {
            "status": ADDED,
            "snapshot_id": base.snapshot.snapshot_id,
            "spec_id": spec_id,
            "partition": {each.name: partition[each.name] for each in spec.fields},
            "file_path": uri,
            "file_format": "PARQUET",
            "file_size_in_bytes": len(content),
            **members,
        }
        entries = pa.Table.from_pylist([row], entry_schema(writer.partition))
        added = base.files.manifest("deletes", writer, lambda: entries, base.snapshot)
        manifests = pa.concat_tables([added, base.manifests])
        return FileChange("delete", manifests, FileCounts.of([entries]), partitions=1)

    publish_change(handle, produce, commit=None)
