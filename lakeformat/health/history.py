"""Which files older snapshots, changelogs, tags and branches still need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.handle import TableHandle
from lakeformat.layout import MAIN_BRANCH, TableLayout
from lakeformat.metadata.branch_directory import branches
from lakeformat.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.metadata.expired_changes import without_expired_changes
from lakeformat.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.metadata.manifest_list import (
    ManifestMeta,
    manifests_of,
    read_manifest_list,
)
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.metadata.tag import read_tags
from lakeformat.storage import Storage

__all__ = ["Reachable", "find_reachable"]

_READERS = 16
"""Small files are asked for at a time: a bucket takes longer to answer than to send."""
_LOOKS = 3
NO_PRODUCER = "none"
_T = TypeVar("_T")
_R = TypeVar("_R")

_FILES = pa.schema(
    [
        ("partition", pa.large_binary()),
        ("bucket", pa.int64()),
        ("name", pa.large_binary()),
        ("size", pa.int64()),
    ]
)


@dataclass(slots=True)
class Reachable:
    """Every file with rows, or an index of them, that something leads to."""

    data: list[pa.Table] = field(default_factory=list)
    """Data and changelog files; one may be there many times."""
    index: dict[str, int] = field(default_factory=dict)
    """Index files by name, with their sizes."""


def find_reachable(handle: TableHandle) -> Reachable:
    """Data, changelog and index files by what leads to them, with their sizes."""
    storage, layout = handle.storage, handle.layout
    for remaining in reversed(range(_LOOKS)):
        found, before = Reachable(), _state(storage, layout)
        try:
            for branch in before:
                _Walk(handle, layout.on_branch(branch), found).walk()
            return found
        except CorruptTableError:  # a file that an expiry took away meanwhile is no damage
            if not remaining or _state(storage, layout) == before:
                raise
    raise AssertionError("the last look returns or raises")


def _state(storage: Storage, layout: TableLayout) -> dict[str, tuple[list[int], list[str]]]:
    names = [MAIN_BRANCH, *(branch.name for branch in branches(storage, layout))]
    seen = {name: layout.on_branch(name) for name in names}
    return {
        name: (
            snapshot_ids(storage, of),
            [tag.name for tag in storage.list(of.tag_directory)],
        )
        for name, of in seen.items()
    }


class _Walk:
    """One branch: its oldest snapshot, and what each later one added; its tags and changelogs."""

    def __init__(self, handle: TableHandle, layout: TableLayout, found: Reachable) -> None:
        self._handle = handle
        self._storage = handle.storage
        self._layout = layout
        self._found = found
        self._index_manifest: Callable[[str], list[IndexManifestEntry]] = cache(self._read_index)

    def walk(self) -> None:
        storage, layout = self._storage, self._layout
        snapshots = [
            snapshot
            for snapshot in _each(
                lambda number: read_snapshot_if_present(storage, layout, number),
                snapshot_ids(storage, layout),
            )
            if snapshot is not None
        ]
        kept = {snapshot.id: snapshot for snapshot in snapshots}
        tags = [
            tag.snapshot
            for tag in read_tags(storage, layout)
            if kept.get(tag.snapshot.id, tag.snapshot.id) != tag.snapshot
        ]
        changelogs = _each(
            lambda number: read_changelog(storage, layout, number),
            changelog_ids(storage, layout),
        )
        for state in [*snapshots[:1], *tags]:
            self._add_live(state)
        lists: list[tuple[str, int | None]] = [
            (s.delta_manifest_list, s.delta_manifest_list_size) for s in snapshots[1:]
        ]
        # A tag keeps what its snapshot consists of; its changes expire with the snapshot.
        first = [without_expired_changes(storage, layout, each) for each in snapshots[:1]]
        told = [*first, *snapshots[1:], *changelogs]
        lists += [found for each in told if (found := _changelog_list(each)) is not None]
        lists += [
            (each.delta_manifest_list, each.delta_manifest_list_size)
            for each in self._untold(changelogs)
        ]
        self._add_lists(lists)
        self._add_index_files([*snapshots, *tags])

    def _untold(self, changelogs: Sequence[Snapshot]) -> list[Snapshot]:
        """The changelogs whose changes are what their commits added: nothing has told of them."""
        untold = [each for each in changelogs if each.changelog_manifest_list is None]
        if self._handle.options.changelog_producer == NO_PRODUCER:
            return untold
        # With a producer it has expired, but for what is from before there was one.
        return [each for each in untold if self._is_there(each.delta_manifest_list)]

    def _is_there(self, name: str) -> bool:
        return self._storage.exists(self._layout.manifest(name))

    def _add_live(self, snapshot: Snapshot) -> None:
        manifests = manifests_of(self._storage, self._layout, snapshot)
        columns = read_manifests(self._storage, self._layout, manifests)
        rows = live_rows(columns, f"snapshot {snapshot.id} of {self._handle.uri}")
        self._add(columns.take(rows))

    def _add_lists(self, lists: Sequence[tuple[str, int | None]]) -> None:
        """Whatever the manifests of these lists add."""
        manifests = self._manifests(lists)
        if manifests:
            columns = read_manifests(self._storage, self._layout, manifests)
            self._add(columns.filter(~columns.is_delete))

    def _manifests(self, lists: Sequence[tuple[str, int | None]]) -> list[ManifestMeta]:
        found = _each(
            lambda each: read_manifest_list(self._storage, self._layout, each[0], size=each[1]),
            lists,
        )
        by_name = {manifest.file_name: manifest for manifests in found for manifest in manifests}
        return list(by_name.values())

    def _add(self, columns: ManifestColumns) -> None:
        self._found.data.append(files_of(columns))

    def _add_index_files(self, snapshots: Iterable[Snapshot]) -> None:
        for name in {each.index_manifest for each in snapshots if each.index_manifest is not None}:
            self._found.index |= {
                entry.file_name: entry.file_size for entry in self._index_manifest(name)
            }

    def _read_index(self, name: str) -> list[IndexManifestEntry]:
        return read_index_manifest(self._storage, self._layout, name)


def _changelog_list(snapshot: Snapshot) -> tuple[str, int | None] | None:
    name = snapshot.changelog_manifest_list
    return None if name is None else (name, snapshot.changelog_manifest_list_size)


def files_of(columns: ManifestColumns) -> pa.Table:
    """Where some files are, and how large."""
    return pa.table(
        [
            columns.partition.to_arrow(),
            pa.array(np.asarray(columns.bucket.numbers)),
            columns.file_name.to_arrow(),
            pa.array(np.asarray(columns.file_size.numbers)),
        ],
        schema=_FILES,
    )


def _each(read: Callable[[_T], _R], of: Sequence[_T]) -> list[_R]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(read, of))
