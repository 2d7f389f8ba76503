"""A table in a directory of any storage, made of metadata alone, for tests of commits."""

from __future__ import annotations

import json
from typing import Any

from lakeformat.environment import Environment
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.iceberg.metadata.updates import (
    add_snapshot,
    new_snapshot_id,
    next_sequence_number,
    next_timestamp,
)
from lakeformat.storage import NO_ROOTS, Storage
from tests.crash.simulated import NOW_MILLIS, simulated

ROOT = "shop/orders"


def empty_metadata(location: str = "file:///t", version: int = 2, **members: Any) -> TableMetadata:
    """Metadata of a table with one column and no snapshot."""
    field = {"id": 1, "name": "id", "required": False, "type": "int"}
    written = {
        "format-version": version,
        "table-uuid": "4f2b",
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": NOW_MILLIS - 1000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [field]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    if version > 2:
        written["next-row-id"] = 0
    return metadata_from_json(written | members)


def handle_on(storage: Storage, environment: Environment | None = None) -> TableHandle:
    """A new handle, as another process has it, of the table on a storage."""
    world = environment or simulated()
    return TableHandle(DirectoryPointer(storage, ROOT, NO_ROOTS, world), "main", world)


def path_table(storage: Storage, version: int = 2, **members: Any) -> TableHandle:
    """Write the first metadata file of a table and return its handle."""
    metadata = empty_metadata(storage.uri(ROOT), version, **members)
    content = json.dumps(metadata_to_json(metadata)).encode()
    storage.overwrite(f"{ROOT}/metadata/v1.metadata.json", content)
    return handle_on(storage)


def next_snapshot(
    metadata: TableMetadata, name: str, *, branch: str = "main", rows: int = 1, **members: Any
) -> Snapshot:
    """A snapshot that may follow as the newest of a branch; the name makes its id."""
    head = metadata.references.get(branch)
    return Snapshot(
        snapshot_id=members.pop("snapshot_id", None) or new_snapshot_id(metadata, lambda: name),
        timestamp_ms=members.pop("timestamp_ms", next_timestamp(metadata, NOW_MILLIS)),
        sequence_number=next_sequence_number(metadata),
        parent_id=None if head is None else head.snapshot_id,
        manifest_list=members.pop(
            "manifest_list", f"{metadata.location}/metadata/snap-{name}.avro"
        ),
        summary={"operation": "append", "name": name, **members.pop("summary", {})},
        schema_id=metadata.current_schema_id,
        first_row_id=metadata.next_row_id if metadata.format_version > 2 else None,
        added_rows=rows if metadata.format_version > 2 else None,
    )


def appended(
    metadata: TableMetadata, name: str, branch: str = "main", **members: Any
) -> TableMetadata:
    """Metadata with one more snapshot on a branch."""
    return add_snapshot(metadata, next_snapshot(metadata, name, branch=branch, **members), branch)


def names(metadata: TableMetadata, branch: str = "main") -> list[str]:
    """The names of the snapshots of a branch, oldest first."""
    head = metadata.references.get(branch)
    found = metadata.ancestry(None if head is None else head.snapshot_id)
    return [each.summary["name"] for each in found][::-1]
