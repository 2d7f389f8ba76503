"""The files that the snapshots of a table reference; other files of a commit are orphans."""

from __future__ import annotations

import lakeformat as lake
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from tests.manifest_entries import entries_in


def referenced_files(table: lake.Table, storage, layout: TableLayout) -> set[str]:
    """Every manifest list, manifest and data file some snapshot refers to, by path."""
    found = set()
    for snapshot in table.snapshots():
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            found.add(layout.manifest(name))
            for manifest in read_manifest_list(storage, layout, name):
                found.add(layout.manifest(manifest.file_name))
                for entry in entries_in(storage, layout, manifest.file_name):
                    found.add(layout.data_file(entry.bucket, entry.file.file_name))
    return found


def left_behind(table: lake.Table, storage, layout: TableLayout) -> set[str]:
    """Files of commits that nothing refers to."""
    of_commits = {path for path in storage.files(layout.root) if _is_of_a_commit(path, layout)}
    return of_commits - referenced_files(table, storage, layout)


def _is_of_a_commit(path: str, layout: TableLayout) -> bool:
    return path.startswith((f"{layout.root}/manifest/", f"{layout.root}/bucket-"))


def referenced_metadata(handle: TableHandle, numbers: list[int] | None = None) -> set[str]:
    """Every manifest list, manifest, index manifest and statistics file of some snapshots."""
    storage, layout, found = handle.storage, handle.layout, set()
    for number in snapshot_ids(storage, layout) if numbers is None else numbers:
        snapshot = read_snapshot(storage, layout, number)
        lists = (
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
        )
        for name in filter(None, lists):
            found.add(layout.manifest(name))
            manifests = read_manifest_list(storage, layout, name)
            found.update(layout.manifest(manifest.file_name) for manifest in manifests)
        if snapshot.index_manifest:
            found.add(layout.manifest(snapshot.index_manifest))
        if snapshot.statistics:
            found.add(layout.statistics(snapshot.statistics))
    return found


def metadata_files(handle: TableHandle) -> set[str]:
    """Every file of these kinds that is there, referred to or not."""
    parts = ("/manifest/", "/statistics/")
    files = handle.storage.files(handle.layout.root)
    return {path for path in files if any(part in path for part in parts)}
