"""Changes a table's newest commit, and everything that refers to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import lakeformat as lake
from lakeformat.paimon.metadata.manifest import ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import (
    ManifestMeta,
    read_manifest_list,
    write_manifest_list,
)
from tests.manifest_entries import entries_in


def rewrite_entries(table: lake.Table, change: Callable[[ManifestEntry], ManifestEntry]) -> None:
    """Change the entries of the newest commit."""
    handle = table._handle
    storage, layout = handle.storage, handle.layout
    found = []
    for manifest in delta_of(table):
        entries = [change(e) for e in entries_in(storage, layout, manifest.file_name)]
        storage.delete(layout.manifest(manifest.file_name))
        size = write_manifest(storage, layout, manifest.file_name, entries, handle.options)
        found.append(replace(manifest, file_size=size))
    rewrite_list(table, found)


def rewrite_list(table: lake.Table, manifests: Sequence[ManifestMeta]) -> None:
    """Let the list of the newest commit hold other manifests."""
    handle, snapshot = table._handle, table.latest_snapshot()
    storage, layout, name = handle.storage, handle.layout, snapshot.delta_manifest_list
    storage.delete(layout.manifest(name))
    size = write_manifest_list(storage, layout, name, manifests, handle.options)
    changed = replace(snapshot, delta_manifest_list_size=size)
    storage.overwrite(layout.snapshot(snapshot.id), changed.to_json())


def delta_of(table: lake.Table) -> list[ManifestMeta]:
    """The files of the newest commit."""
    handle, name = table._handle, table.latest_snapshot().delta_manifest_list
    return read_manifest_list(handle.storage, handle.layout, name)
