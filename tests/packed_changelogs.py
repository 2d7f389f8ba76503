"""Makes one packed file of a table's changelog files, as Flink's ``precommit-compact`` does."""

from __future__ import annotations

from dataclasses import replace

import lakeformat as lake
from lakeformat.paimon.metadata.manifest import ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of, write_manifest_list
from lakeformat.paimon.metadata.snapshot import Snapshot
from tests.manifest_entries import entries_in

__all__ = ["pack_changelogs"]

UNIQUE = "909b567d-2df0-4ea0-bee7-b9277f30d711"


class _Packing:
    """The packed file as far as it has come; its first part gives it its name."""

    def __init__(self, table: lake.Table) -> None:
        self.handle = table._handle
        self.content = b""
        self.path = self.name = ""

    def pack(self, snapshot: Snapshot) -> None:
        """Move the changelog files of a snapshot into the packed file."""
        storage, layout, options = self.handle.storage, self.handle.layout, self.handle.options
        manifests = []
        for manifest in manifests_of(storage, layout, snapshot, ListKind.CHANGELOG):
            entries = [*map(self._packed, entries_in(storage, layout, manifest.file_name))]
            storage.delete(layout.manifest(manifest.file_name))
            size = write_manifest(storage, layout, manifest.file_name, entries, options)
            manifests.append(replace(manifest, file_size=size))
        name = snapshot.changelog_manifest_list
        storage.delete(layout.manifest(name))
        size = write_manifest_list(storage, layout, name, manifests, options)
        changed = replace(snapshot, changelog_manifest_list_size=size)
        storage.overwrite(layout.snapshot(snapshot.id), changed.to_json())

    def _packed(self, entry: ManifestEntry) -> ManifestEntry:
        storage, layout, file = self.handle.storage, self.handle.layout, entry.file
        path = layout.data_file(entry.bucket, file.file_name)
        content = storage.read(path)
        storage.delete(path)
        start, self.content = len(self.content), self.content + content
        _, _, ending = file.file_name.rpartition(".")
        if not self.name:
            self.name = f"compacted-changelog-{UNIQUE}${entry.bucket}-{len(content)}"
            self.path = f"{layout.bucket_directory(entry.bucket)}/{self.name}.cc-{ending}"
            name = self.name
        else:
            name = f"{self.name}-{start}-{len(content)}"
        return replace(entry, file=replace(file, file_name=f"{name}.cc-{ending}"))


def pack_changelogs(table: lake.Table, *numbers: int) -> str:
    """Pack the changelog files of some snapshots into one file and return its path."""
    packing = _Packing(table)
    for number in numbers:
        packing.pack(table.snapshot(number))
    storage = table._handle.storage
    with storage.open_output(packing.path) as sink:
        sink.write(packing.content)
    return packing.path
