# SPDX-License-Identifier: Apache-2.0
"""Finds the files of older snapshots, changelogs, tags and branches, and the reason to keep
each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health_report import Holder
from lakeformat.paimon.health.overdue import Overdue
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.paimon.metadata.manifest_list import (
    ManifestMeta,
    manifests_of,
    read_manifest_list,
)
from lakeformat.paimon.metadata.recent_manifests import RecentManifests
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import Tag, read_tags
from lakeformat.types.arrow_memory import array_of

__all__ = ["KeptFor", "Reachable", "files_of", "find_reachable"]

_READERS = 16
"""The number of small files that are read in parallel; object stores answer slowly."""
_MOST_ENTRIES = 100_000
"""The limit for manifest entries in memory; they are kept for tags with the same manifests."""
NO_PRODUCER = "none"
_List: TypeAlias = tuple[str, int | None]
"""The name of a manifest list, and its size in bytes if known."""
_T = TypeVar("_T")
_R = TypeVar("_R")


class KeptFor(IntEnum):
    """The reasons to keep a file; of several reasons, the highest number counts."""

    OVERDUE = 0
    """Kept for snapshots and changelogs that an expiry would delete now."""
    BRANCH = 1
    """Kept for another branch; used in the report of main."""
    RETENTION = 2
    """Kept for tags, consumers, and snapshots and changelogs within their retention."""
    NEWEST = 3
    """Kept for the newest snapshot."""


_FILES = pa.schema(
    [
        ("partition", pa.large_binary()),
        ("bucket", pa.int64()),
        ("name", pa.large_binary()),
        ("size", pa.int64()),
        ("kept_for", pa.int8()),
    ]
)


@dataclass(slots=True)
class Reachable:
    """All data, changelog and index files to which snapshots, changelogs, tags and branches
    refer.
    """

    data: list[pa.Table] = field(default_factory=list)
    """Data and changelog files with the reason to keep them; a file may be listed several times."""
    index: dict[str, tuple[int, KeptFor]] = field(default_factory=dict)
    """Index files by name: the size in bytes and the reason to keep the file."""
    holders: list[Holder] = field(default_factory=list)
    """The tags of the table's branch, and the oldest snapshot of each other branch."""
    of_branches: set[str] = field(default_factory=set)
    """The identities of the snapshots of other branches.

    If a tag of main has such a snapshot, the files of the tag are kept for the branch.
    """


def find_reachable(handle: TableHandle, overdue: Overdue) -> Reachable:
    """Return all files to which the table refers, with their sizes and the reasons to keep them."""

    def look() -> Reachable:
        found = Reachable()
        there = branches(handle.storage, handle.layout)
        names = (MAIN_BRANCH, *(branch.name for branch in there))
        # the branch of the handle is last
        for name in sorted(names, key=handle.layout.branch.__eq__):
            _Walk(handle, handle.layout.on_branch(name), found, overdue).walk()
        return found

    return look_again(handle, look)


class _Walk:
    """Collects the files of one branch: those of its oldest snapshot, of its tags and changelogs,
    and the files that later snapshots added.
    """

    def __init__(
        self, handle: TableHandle, layout: TableLayout, found: Reachable, overdue: Overdue
    ) -> None:
        self._handle = handle
        self._overdue = overdue
        self._is_own = layout.branch == handle.layout.branch
        self._storage = handle.storage
        self._layout = layout
        self._found = found
        self._recent = RecentManifests[ManifestColumns](_MOST_ENTRIES)
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
        kept = {each.id: each for each in snapshots if self._kept_for(each) is not KeptFor.OVERDUE}
        all_tags = read_tags(storage, layout)
        self._found.holders += self._holders(snapshots, all_tags)
        tags = [tag.snapshot for tag in all_tags if kept.get(tag.snapshot.id) != tag.snapshot]
        if not self._is_own:
            self._found.of_branches |= {each.identity for each in [*snapshots, *tags]}
        told = _each(
            lambda number: read_changelog_if_present(storage, layout, number),
            changelog_ids(storage, layout),
        )
        changelogs = [changelog for changelog in told if changelog is not None]
        for state in self._states(snapshots):
            self._add_live(state, self._kept_for(state), self._read)
        for state in tags:
            self._add_live(state, self._tag_kept_for(state), self._read_of_tag)
        self._add_lists(self._lists(snapshots, changelogs))
        named = {(each.index_manifest, self._kept_for(each)) for each in snapshots}
        named |= {(each.index_manifest, self._tag_kept_for(each)) for each in tags}
        for name, why in named:
            if name is not None:
                self._add_index_files(name, why)

    @property
    def _others(self) -> KeptFor:
        """The reason to keep files of a snapshot that is not overdue."""
        is_other = not self._is_own and self._handle.layout.branch == MAIN_BRANCH
        return KeptFor.BRANCH if is_other else KeptFor.RETENTION

    def _kept_for(self, snapshot: Snapshot) -> KeptFor:
        is_overdue = self._is_own and snapshot.id < self._overdue.snapshots.first_left
        return KeptFor.OVERDUE if is_overdue else self._others

    def _tag_kept_for(self, tagged: Snapshot) -> KeptFor:
        is_of_main = self._is_own and self._layout.branch == MAIN_BRANCH
        if is_of_main and tagged.identity in self._found.of_branches:
            return KeptFor.BRANCH
        return self._others

    def _changelog_kept_for(self, changelog: Snapshot) -> KeptFor:
        is_overdue = self._is_own and changelog.id < self._overdue.changelogs.first_left
        return KeptFor.OVERDUE if is_overdue else self._others

    def _holders(self, snapshots: Sequence[Snapshot], tags: Sequence[Tag]) -> list[Holder]:
        if self._is_own:
            held = [
                (f"tag {tag.name!r}", tag.snapshot)
                for tag in tags
                if self._tag_kept_for(tag.snapshot) is not KeptFor.BRANCH
            ]
        else:
            held = [(f"branch {self._layout.branch!r}", each) for each in snapshots[:1]]
        return [Holder(what, each.id, each.time_millis) for what, each in held]

    def _states(self, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
        """Return, for each reason to keep snapshots, the oldest snapshot that is kept for it.

        The later ones are not needed: each of their files is in the oldest one, or was added since.
        """
        oldest: dict[KeptFor, Snapshot] = {}
        for each in snapshots:
            oldest.setdefault(self._kept_for(each), each)
        return [*oldest.values()]

    def _lists(
        self, snapshots: Sequence[Snapshot], changelogs: Sequence[Snapshot]
    ) -> dict[KeptFor, list[_List]]:
        """Return the delta and changelog lists to read, by the reason to keep their files."""
        storage, layout = self._storage, self._layout
        lists: dict[KeptFor, list[_List]] = {kept: [] for kept in KeptFor}
        outlive = self._overdue.changelogs_outlive
        # Without a producer, the changelog of a snapshot is the list of files that its commit
        # added.
        additions_outlive = outlive and self._handle.options.changelog_producer == NO_PRODUCER
        for each in snapshots if additions_outlive else snapshots[1:]:
            kept = self._others if additions_outlive else self._kept_for(each)
            lists[kept].append((each.delta_manifest_list, each.delta_manifest_list_size))
        # A tag keeps the state of its snapshot, but its changes expire with the snapshot.
        first = [without_expired_changes(storage, layout, each) for each in snapshots[:1]]
        for each in [*first, *snapshots[1:]]:
            kept = self._others if outlive else self._kept_for(each)
            lists[kept] += _changelog_list(each)
        for each in changelogs:
            lists[self._changelog_kept_for(each)] += _changelog_list(each)
        for each in self._without_list(changelogs):
            kept = self._changelog_kept_for(each)
            lists[kept].append((each.delta_manifest_list, each.delta_manifest_list_size))
        return lists

    def _without_list(self, changelogs: Sequence[Snapshot]) -> list[Snapshot]:
        """Return the changelogs that consist of the files that their commits added.

        Such a changelog has no changelog list.
        """
        unlisted = [each for each in changelogs if each.changelog_manifest_list is None]
        if self._handle.options.changelog_producer == NO_PRODUCER:
            return unlisted
        # With a producer, such a changelog has its added files only if it is older than the
        # producer.
        return [each for each in unlisted if self._is_there(each.delta_manifest_list)]

    def _is_there(self, name: str) -> bool:
        return self._storage.exists(self._layout.manifest(name))

    def _add_live(
        self,
        snapshot: Snapshot,
        kept: KeptFor,
        read: Callable[[Sequence[ManifestMeta]], ManifestColumns],
    ) -> None:
        columns = read(manifests_of(self._storage, self._layout, snapshot))
        rows = live_rows(columns, f"snapshot {snapshot.id} of {self._handle.uri}")
        self._found.data.append(files_of(columns.take(rows), kept))

    def _read(self, manifests: Sequence[ManifestMeta]) -> ManifestColumns:
        return read_manifests(self._storage, self._layout, manifests)

    def _read_of_tag(self, manifests: Sequence[ManifestMeta]) -> ManifestColumns:
        """Return the manifest entries of a tag; entries in memory from earlier tags are reused."""

        def read(unread: Sequence[ManifestMeta]) -> list[ManifestColumns]:
            return _each(lambda manifest: self._read([manifest]), unread)

        return ManifestColumns.concat([*self._recent.each(manifests, read)])

    def _add_lists(self, lists: Mapping[KeptFor, Sequence[_List]]) -> None:
        for kept, some in lists.items():
            manifests = self._manifests(some)
            if manifests:
                columns = self._read(manifests)
                self._found.data.append(files_of(columns.filter(~columns.is_delete), kept))

    def _manifests(self, lists: Sequence[_List]) -> list[ManifestMeta]:
        found = _each(
            lambda each: read_manifest_list(self._storage, self._layout, each[0], size=each[1]),
            lists,
        )
        by_name = {manifest.file_name: manifest for manifests in found for manifest in manifests}
        return list(by_name.values())

    def _add_index_files(self, name: str, kept: KeptFor) -> None:
        index = self._found.index
        for entry in self._index_manifest(name):
            _, before = index.get(entry.file_name, (0, kept))
            index[entry.file_name] = (entry.file_size, max(before, kept))

    def _read_index(self, name: str) -> list[IndexManifestEntry]:
        return read_index_manifest(self._storage, self._layout, name)


def _changelog_list(snapshot: Snapshot) -> list[_List]:
    name = snapshot.changelog_manifest_list
    return [] if name is None else [(name, snapshot.changelog_manifest_list_size)]


def files_of(columns: ManifestColumns, kept: KeptFor) -> pa.Table:
    """Return partition, bucket, name and size of each entry's file, and the reason ``kept``."""
    return pa.table(
        [
            columns.partition.to_arrow(),
            array_of(np.asarray(columns.bucket.numbers)),
            columns.file_name.to_arrow(),
            array_of(np.asarray(columns.file_size.numbers)),
            array_of(np.full(len(columns), kept, np.int8)),
        ],
        schema=_FILES,
    )


def _each(read: Callable[[_T], _R], of: Sequence[_T]) -> list[_R]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(read, of))
