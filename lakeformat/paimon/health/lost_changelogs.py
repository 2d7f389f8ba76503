# SPDX-License-Identifier: Apache-2.0
"""Finds missing and truncated changelog files of snapshots and changelogs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.changelog_packs import real_name
from lakeformat.paimon.datafile.file_presence import what_is_left
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.file_places import data_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.lost import LOOKS_AT_ONCE, not_seen_whole
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.manifest import ManifestColumns, ManifestEntry, read_manifests
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.orphans.name_set import numbers_of
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import Storage

__all__ = ["find_lost_changelogs"]


def find_lost_changelogs(handle: TableHandle, listed: pa.Table) -> tuple[str, ...]:
    """Return the addresses of missing and truncated changelog files, sorted.

    ``listed`` is an earlier listing. A file that is missing or too small in it is checked in
    storage. Files outside of the table that the caller does not allow are left out.
    """
    named = look_again(handle, lambda: _named(handle))
    names = numbers_of(real_name(name or b"") for name in named.file_name.values())
    doubtful = named.entries(not_seen_whole(names, named.file_size.numbers, listed))
    places = [(entry, place) for entry in doubtful for place in _place(handle, entry)]
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        remains = list(
            pool.map(
                lambda each: what_is_left(each[1][0], each[1][1], each[0].file.file_size), places
            )
        )
    lost = [each for each, found in zip(places, remains, strict=True) if not found.is_whole]
    if not lost:
        return ()
    # Meanwhile an expiry may have deleted such a file together with its snapshot.
    still = {*look_again(handle, lambda: _named(handle)).file_name.texts()}
    return tuple(
        sorted(
            {storage.uri(path) for entry, (storage, path) in lost if entry.file.file_name in still}
        )
    )


def _named(handle: TableHandle) -> ManifestColumns:
    """Return the manifest entries of the changelog files of the branch."""
    storage, layout = handle.storage, handle.layout
    manifests = {
        manifest.file_name: manifest
        for each in _with_changes(handle)
        if (name := each.changelog_manifest_list) is not None
        for manifest in read_manifest_list(
            storage, layout, name, size=each.changelog_manifest_list_size
        )
    }
    found = read_manifests(storage, layout, [*manifests.values()])
    return found.filter(~found.is_delete)


def _with_changes(handle: TableHandle) -> Iterator[Snapshot]:
    storage, layout = handle.storage, handle.layout
    for position, number in enumerate(snapshot_ids(storage, layout)):
        snapshot = read_snapshot_if_present(storage, layout, number)
        if snapshot is not None:
            is_first = position == 0
            yield without_expired_changes(storage, layout, snapshot) if is_first else snapshot
    for number in changelog_ids(storage, layout):
        changelog = read_changelog_if_present(storage, layout, number)
        if changelog is not None:
            yield changelog


def _place(handle: TableHandle, entry: ManifestEntry) -> Iterator[tuple[Storage, str]]:
    directory = partition_path(handle.schema, entry.partition)
    try:
        yield data_file_place(handle, entry.bucket, entry.file, directory)
    except InvalidRequestError:
        return
