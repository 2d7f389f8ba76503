"""Which data files a scan reads: the manifests of one snapshot, merged."""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.errors import UnsupportedError
from lakeformat.handle import TableHandle, require_plain_append_table
from lakeformat.metadata.manifest import ManifestEntry, live_files, read_manifest
from lakeformat.metadata.manifest_list import read_manifest_list
from lakeformat.metadata.snapshot import Snapshot

__all__ = ["plan_files"]


def plan_files(handle: TableHandle, snapshot: Snapshot) -> list[ManifestEntry]:
    """The live files of a snapshot, in the order they were committed."""
    require_plain_append_table(handle)
    source = f"snapshot {snapshot.id} of {handle.uri}"
    if snapshot.index_manifest is not None:
        raise UnsupportedError(
            f"{source} has an index manifest (deletion vectors or other indexes), which this "
            "version does not read; its rows would be wrong"
        )
    files = live_files(_entries(handle, snapshot), source)
    for entry in files:
        _check_readable(entry, source)
    return files


def _check_readable(entry: ManifestEntry, source: str) -> None:
    if entry.file.external_path is not None:
        raise UnsupportedError(
            f"{source} keeps {entry.file.file_name} at {entry.file.external_path}, outside the "
            "table; this version does not read external paths"
        )
    if entry.file.write_cols is not None:
        raise UnsupportedError(
            f"{source} keeps only some columns in {entry.file.file_name}; this version does not "
            "join files by row id"
        )


def _entries(handle: TableHandle, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    for list_name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
        for manifest in read_manifest_list(handle.storage, handle.layout, list_name):
            yield from read_manifest(handle.storage, handle.layout, manifest.file_name)
