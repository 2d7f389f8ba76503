"""Which files the snapshots of a table lead to; all others of a commit are left behind."""

from __future__ import annotations

import lakeformat as lake
from lakeformat.layout import TableLayout
from lakeformat.metadata.manifest import read_manifest
from lakeformat.metadata.manifest_list import read_manifest_list


def referenced_files(table: lake.Table, storage, layout: TableLayout) -> set[str]:
    """Every manifest list, manifest and data file some snapshot refers to, by path."""
    found = set()
    for snapshot in table.snapshots():
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            found.add(layout.manifest(name))
            for manifest in read_manifest_list(storage, layout, name):
                found.add(layout.manifest(manifest.file_name))
                for entry in read_manifest(storage, layout, manifest.file_name):
                    found.add(layout.data_file(entry.bucket, entry.file.file_name))
    return found


def left_behind(table: lake.Table, storage, layout: TableLayout) -> set[str]:
    """Files of commits that nothing refers to."""
    of_commits = {path for path in storage.files(layout.root) if _is_of_a_commit(path, layout)}
    return of_commits - referenced_files(table, storage, layout)


def _is_of_a_commit(path: str, layout: TableLayout) -> bool:
    return path.startswith((f"{layout.root}/manifest/", f"{layout.root}/bucket-"))
