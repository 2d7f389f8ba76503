"""Tables in a directory of any storage, for tests that write rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import Storage
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.path_table import ROOT, handle_on, path_table

COLUMNS = {"id": "long", "k": "string"}


def made_table(
    storage: Storage,
    version: int = 2,
    *,
    columns: dict[str, Any] = COLUMNS,
    partition: dict[str, str] | None = None,
    **properties: str,
) -> TableHandle:
    """An empty table; ``partition`` maps columns to transforms, a property's dots are ``_``."""
    fields = [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(columns.items(), 1)
    ]
    parts = [
        {
            "source-id": [*columns].index(name) + 1,
            "field-id": 1000 + place,
            "name": f"{name}_part",
            "transform": transform,
        }
        for place, (name, transform) in enumerate((partition or {}).items())
    ]
    return path_table(
        storage,
        version,
        **{
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "last-column-id": len(fields),
            "partition-specs": [{"spec-id": 0, "fields": parts}],
            "last-partition-id": 999 + len(parts),
            "properties": {key.replace("_", "."): value for key, value in properties.items()},
        },
    )


def edited(handle: TableHandle, **members: Any) -> IcebergTable:
    """The table after another engine changed members of the metadata; a name's ``-`` is ``_``."""
    storage = handle.pointer._storage
    new = {key.replace("_", "-"): value for key, value in members.items()}
    content = metadata_to_json(handle.load().metadata) | new
    files = [each for each in storage.list(f"{ROOT}/metadata") if each.name.endswith(".json")]
    path = f"{ROOT}/metadata/v{len(files) + 1}.metadata.json"
    storage.overwrite(path, json.dumps(content).encode())
    return IcebergTable(handle_on(storage))


def keep_newest(handle: TableHandle) -> None:
    """Expire all snapshots but the newest one of each branch, as on a later day."""
    later = Environment(now_millis=lambda: NOW_MILLIS + 30 * 86_400_000)
    own = IcebergTable(replace(handle, environment=later))
    own.expire_snapshots(older_than="1 d", retain_min=1)


def rows_of(handle: TableHandle) -> list[dict[str, Any]]:
    """The rows of the branch, by id."""
    return IcebergTable(handle).scan().to_arrow().sort_by("id").to_pylist()


def ids_of(handle: TableHandle) -> list[int]:
    return [row["id"] for row in rows_of(handle)]


def head_of(handle: TableHandle) -> Snapshot:
    metadata = handle.load().metadata
    found = metadata.snapshot(metadata.references[handle.branch].snapshot_id)
    assert found is not None
    return found


def manifests_of(handle: TableHandle) -> pa.Table:
    return read_manifest_list(handle.load().places, head_of(handle))


def entries_of(handle: TableHandle) -> list[dict[str, Any]]:
    """All entries of the manifests, also those of deleted files."""
    loaded = handle.load()
    found = read_entries(loaded.places, loaded.metadata, manifests_of(handle))
    return [row for entries in found.values() for row in entries.to_pylist()]


def referenced_files(handle: TableHandle) -> set[str]:
    """The paths of all files that the kept snapshots refer to."""
    loaded = handle.load()
    found: set[str] = set()
    for snapshot in loaded.metadata.snapshots:
        manifests = read_manifest_list(loaded.places, snapshot)
        entries = read_entries(loaded.places, loaded.metadata, manifests).values()
        found.add(snapshot.manifest_list or "")
        found.update(manifests.column("manifest_path").to_pylist())
        for some in entries:
            found.update(live_entries(some).column("file_path").to_pylist())
    return {loaded.places.place(each)[1] for each in found}


def stored_files(storage: Storage, directory: str = "shop/orders") -> set[str]:
    """The paths of all files, without those of the table's metadata itself."""
    found: set[str] = set()
    for info in storage.list(directory):
        if info.is_directory:
            found |= stored_files(storage, info.path)
        elif not info.name.endswith((".metadata.json", "version-hint.text")):
            found.add(info.path)
    return found
