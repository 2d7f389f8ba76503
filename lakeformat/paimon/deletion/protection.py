# SPDX-License-Identifier: Apache-2.0
"""Finds, among the files to delete, those that tags, branches or kept snapshots still need."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from lakeformat.paimon.deletion.candidates import Candidates
from lakeformat.paimon.deletion.changelog_ownership import ChangelogOwnership
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.reachable_files import MetadataFiles, metadata_of, none_if_missing
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog_if_present,
)
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.manifest import read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags

__all__ = ["Protection", "find_protection", "lists_of_changelog"]

LATER_SNAPSHOTS = 100
"""The number of snapshots that a deletion of files checks after the oldest kept snapshot.

A rollback may have created one of them, and so added files again that the expiry would delete. If
an expiry deletes more than 100 snapshots at once, it checks as many later snapshots as it deletes.
The newest snapshot is always checked, too. If a rollback restored files in any other snapshot, the
rollback's tag protects these files.
"""
_log = logging.getLogger(__name__)
BASE = ListKind.BASE
STATE = (BASE, ListKind.DELTA)


@dataclass(slots=True)
class Protection:
    """The kept snapshots, tags and changelogs of all branches; their files must not be deleted."""

    handle: TableHandle
    tags: list[Snapshot] = field(default_factory=list)
    """The snapshots of tags. All files of their state are needed, but not their changelogs."""
    starts: list[Snapshot] = field(default_factory=list)
    """The oldest snapshot of each other branch, and kept snapshots below ``oldest``.

    All files of their state and their changelogs are needed.
    """
    additions: list[Snapshot] = field(default_factory=list)
    """The later snapshots of other branches. The files that they added and their changelogs are
    needed.
    """
    oldest: Snapshot | None = None
    """This branch keeps this snapshot and all later ones; None if it keeps no snapshot.

    Older snapshots that a rollback restored are kept, too; they are in ``starts``.
    """
    later: list[Snapshot] = field(default_factory=list)
    """Later snapshots of this branch, which may have added deleted files again."""
    leaves_out_some: bool = False
    """True if this branch has later snapshots that are not in ``later``."""
    with_oldest_state: bool = False
    """True to protect all files of the state of ``oldest``.

    False is right only if no candidate can be one of these files.
    """
    changelogs: list[Snapshot] = field(default_factory=list)
    """Expired snapshots whose changelogs are kept."""
    own_changelogs: Sequence[int] = ()
    """The ids of kept changelogs of this branch: the 100 oldest and the 100 newest.

    They are read only if a packed changelog is a candidate: it may have parts of several snapshots.
    """
    later_changelogs: Sequence[int] = ()
    """The ids of later changelogs of this branch, which may name deleted files again."""

    def metadata(self) -> MetadataFiles:
        """Return the metadata and index files to keep.

        Manifests of later snapshots are left out: they are new, or the oldest snapshot names them,
        too. The index files and statistics of later snapshots are included, because after a
        rollback a later snapshot may name old ones again.
        """
        handle, found = self.handle, MetadataFiles()
        wholes = [*self.starts, *self.additions, *([self.oldest] if self.oldest else ())]
        for each in in_parallel(handle, partial(metadata_of, handle), wholes):
            found.update(each)
        of_tags = partial(metadata_of, handle, lists=STATE)
        for each in in_parallel(handle, of_tags, self.tags):
            found.update(each)
        for each in in_parallel(handle, self._metadata_of_changelog, self.changelogs):
            found.update(each)
        for snapshot in self.later:
            if snapshot.index_manifest not in found.index_manifests:
                found.update(metadata_of(handle, snapshot, ()))
            if snapshot.statistics:
                found.statistics.add(snapshot.statistics)
        return found

    def index_files(self) -> set[str]:
        """Return the keys of the index files of tags, other branches and snapshots in ``starts``.

        With ``with_oldest_state``, those of ``oldest`` are returned, too.
        """
        snapshots = {each.index_manifest: each for each in (*self._wholes(), *self.additions)}
        snapshots.pop(None, None)
        read = partial(metadata_of, self.handle, lists=())
        found = in_parallel(self.handle, read, [*snapshots.values()])
        return set(chain.from_iterable(each.index_files for each in found))

    def spare(self, candidates: Candidates) -> set[str]:
        """Remove from the candidates the files that are still needed; return the keys of these
        files.

        ``FilePlaces.keys`` describes the keys of files.
        """
        if not len(candidates):
            return set()
        seen = _Sightings(self.handle, candidates)
        needed: set[str] = set()
        for snapshot in self._wholes():
            needed |= seen.live(self._manifests(snapshot, *STATE))
        for manifests in self._many(self.additions, ListKind.DELTA):
            needed |= seen.added(manifests)
        needed |= self._added_again(seen)
        others = [*self.starts, *self.additions]
        for manifests in self._many(others, ListKind.CHANGELOG):
            needed |= seen.added(manifests)
        changelogs = [*self.changelogs, *self._owners_of_added_files()]
        for manifests in in_parallel(self.handle, self._changes_of, changelogs):
            needed |= seen.added(manifests, _expired)
        if candidates.has_packs:
            needed |= self._parts(seen)
        found = {key for key in needed if key in candidates}
        candidates.drop(found)
        return found

    def _parts(self, seen: _Sightings) -> set[str]:
        """Return the keys of packed changelog files of which this branch still needs a part.

        A kept snapshot or changelog has its changes in this part.
        """
        snapshots = [*([self.oldest] if self.oldest else ()), *self.later]
        read = partial(read_changelog_if_present, self.handle.storage, self.handle.layout)
        snapshots += filter(None, in_parallel(self.handle, read, self.own_changelogs))
        needed: set[str] = set()
        for manifests in self._many(snapshots, ListKind.CHANGELOG):
            needed |= seen.added(manifests, _expired)
        return needed

    def _wholes(self) -> Iterator[Snapshot]:
        yield from self.tags
        yield from self.starts
        if self.oldest is not None and self.with_oldest_state:
            yield self.oldest

    def _added_again(self, seen: _Sightings) -> set[str]:
        """Return the keys of candidates that this branch added again after its oldest snapshot."""
        needed: set[str] = set()
        for manifests in self._many(self.later, ListKind.DELTA):
            needed |= seen.added(manifests)
        if self.oldest is not None and self.leaves_out_some:
            known = {each.file_name for each in self._manifests(self.oldest, *STATE)}
            newest = self._manifests(self.later[-1], *STATE)
            needed |= seen.added([each for each in newest if each.file_name not in known])
        return needed

    def _owners_of_added_files(self) -> list[Snapshot]:
        """Return the later changelogs that consist of the data files that their commits added."""
        storage, layout = self.handle.storage, self.handle.layout
        read = partial(read_changelog_if_present, storage, layout)
        found = in_parallel(self.handle, read, self.later_changelogs)
        without_list = [each for each in found if each and each.changelog_manifest_list is None]
        return [*filter(ChangelogOwnership(storage, layout).needs_files, without_list)]

    def _changes_of(self, changelog: Snapshot) -> list[ManifestMeta]:
        """Return the manifests with the changes of a changelog.

        Return an empty list if its manifest list has expired.
        """
        if changelog.changelog_manifest_list is not None:
            return self._manifests(changelog, ListKind.CHANGELOG)
        handle = self.handle
        path = handle.layout.manifest(changelog.delta_manifest_list)
        read = partial(self._manifests, changelog, ListKind.DELTA)
        return none_if_missing(handle, path, read, _expired) or []

    def _metadata_of_changelog(self, changelog: Snapshot) -> MetadataFiles:
        handle = self.handle
        lists = lists_of_changelog(handle, changelog)
        return metadata_of(handle, changelog, lists, with_index=False)

    def _many(self, snapshots: Sequence[Snapshot], *lists: ListKind) -> list[list[ManifestMeta]]:
        if not lists:
            return []
        return in_parallel(self.handle, lambda each: self._manifests(each, *lists), snapshots)

    def _manifests(self, snapshot: Snapshot, *lists: ListKind) -> list[ManifestMeta]:
        return manifests_of(self.handle.storage, self.handle.layout, snapshot, *lists)


def lists_of_changelog(handle: TableHandle, changelog: Snapshot) -> tuple[ListKind, ...]:
    """Return the manifest lists that a changelog needs after its snapshot has expired.

    If the changelog has a changelog list, return only this list. Otherwise return those of
    its base list and delta list that still exist. If the table had a changelog producer, both were
    deleted with the snapshot. The files are looked up, because the current options do not show if
    the table had a producer then.
    """
    if changelog.changelog_manifest_list is not None:
        return (ListKind.CHANGELOG,)
    storage, layout = handle.storage, handle.layout
    return tuple(
        kind for kind in STATE if storage.exists(layout.manifest(getattr(changelog, kind.value[0])))
    )


def find_protection(
    handle: TableHandle,
    *,
    oldest: Snapshot | None,
    expiring: int = 0,
    with_oldest_state: bool = False,
    without_tags: Collection[str] = (),
    without_branches: Collection[str] = (),
    changelogs: Iterable[Snapshot] = (),
    later_changelogs: Sequence[int] = (),
    older: Iterable[Snapshot] = (),
    expired_changelogs: Collection[int] = (),
) -> Protection:
    """Find everything that a deletion of snapshots, changelogs, tags or branches must keep.

    This branch keeps its snapshots from ``oldest`` on; with ``oldest=None`` it keeps no snapshot.
    ``expiring`` is the number of snapshots or changelogs that expire at once. ``without_tags`` are
    the deleted tags of this branch, ``without_branches`` the deleted branches.

    ``with_oldest_state`` protects all files of the oldest snapshot. Use it if files of a tag or of
    changelogs are deleted, because a commit may have added them again. ``older`` are snapshots
    below ``oldest`` that are kept, because a rollback restored them. ``changelogs`` are kept
    changelogs, ``later_changelogs`` the ids of kept changelogs after them, and
    ``expired_changelogs`` the ids of deleted changelogs.
    """
    storage, layout = handle.storage, handle.layout
    first = partial(without_expired_changes, storage, layout)
    found = Protection(handle, with_oldest_state=with_oldest_state)
    found.later_changelogs = later_changelogs
    found.oldest = None if oldest is None else first(oldest)
    found.changelogs += filter(ChangelogOwnership(storage, layout).needs_files, changelogs)
    found.starts += map(first, older)
    for name in (MAIN_BRANCH, *(branch.name for branch in branches(storage, layout))):
        place, is_own = layout.on_branch(name), name == layout.branch
        if name in without_branches:
            continue
        found.tags += [
            tag.snapshot
            for tag in read_tags(storage, place)
            if not (is_own and tag.name in without_tags)
        ]
        if not is_own:
            _add_branch(handle, place, found)
            continue
        ids = [n for n in changelog_ids(storage, place) if n not in expired_changelogs]
        found.own_changelogs = [*ids[:LATER_SNAPSHOTS], *ids[LATER_SNAPSHOTS:][-LATER_SNAPSHOTS:]]
    if oldest is not None:
        ids = [number for number in snapshot_ids(storage, layout) if number > oldest.id]
        count = max(LATER_SNAPSHOTS, expiring)
        found.leaves_out_some = len(ids) > count
        asked = [*ids[:count], *(ids[-1:] if found.leaves_out_some else ())]
        found.later = _read(handle, layout, asked)
    return found


def _add_branch(handle: TableHandle, place: TableLayout, found: Protection) -> None:
    storage = handle.storage
    snapshots = _read(handle, place, snapshot_ids(storage, place))
    found.starts += [without_expired_changes(storage, place, each) for each in snapshots[:1]]
    found.additions += snapshots[1:]
    read = partial(read_changelog_if_present, storage, place)
    changelogs = filter(None, in_parallel(handle, read, changelog_ids(storage, place)))
    found.changelogs += filter(ChangelogOwnership(storage, place).needs_files, changelogs)


def _read(handle: TableHandle, place: TableLayout, ids: Sequence[int]) -> list[Snapshot]:
    read = partial(read_snapshot_if_present, handle.storage, place)
    return [snapshot for snapshot in in_parallel(handle, read, ids) if snapshot is not None]


class _Sightings:
    """Finds the candidates that manifests name, and reads each manifest only once."""

    def __init__(self, handle: TableHandle, candidates: Candidates) -> None:
        self._handle = handle
        self._candidates = candidates
        self._seen: dict[str, dict[str, tuple[int, bool]]] = {}

    def live(self, manifests: Iterable[ManifestMeta]) -> set[str]:
        """Return the keys of candidates that are live after all ``manifests``, taken together."""
        net: dict[str, int] = {}
        for manifest in manifests:
            for key, (change, _) in self._of(manifest).items():
                net[key] = net.get(key, 0) + change
        return {key for key, count in net.items() if count > 0}

    def added(
        self, manifests: Iterable[ManifestMeta], on_missing: Callable[[str], object] | None = None
    ) -> set[str]:
        """Return the keys of candidates that at least one of ``manifests`` adds.

        A missing manifest raises CorruptTableError. If ``on_missing`` is given, it is called with
        the path instead.
        """
        return set(
            chain.from_iterable(
                (key for key, (_, is_added) in self._of(manifest, on_missing).items() if is_added)
                for manifest in manifests
                if manifest.num_added_files
            )
        )

    def _of(
        self, manifest: ManifestMeta, on_missing: Callable[[str], object] | None = None
    ) -> dict[str, tuple[int, bool]]:
        """Return two values for each candidate that a manifest names, by the candidate's key.

        They are the number of ADD entries of the candidate minus the number of its DELETE entries,
        and True if it has an ADD entry.
        """
        found = self._seen.get(manifest.file_name)
        if found is None:
            found = self._seen[manifest.file_name] = self._read(manifest, on_missing)
        return found

    def _read(
        self, manifest: ManifestMeta, on_missing: Callable[[str], object] | None
    ) -> dict[str, tuple[int, bool]]:
        handle, found = self._handle, dict[str, tuple[int, bool]]()
        path = handle.layout.manifest(manifest.file_name)
        read = partial(read_manifests, handle.storage, handle.layout, [manifest])
        columns = none_if_missing(handle, path, read, on_missing)
        if columns is None:
            return found
        columns = columns.filter(self._candidates.may_name(columns))
        of_entries = self._candidates.keys(columns)
        for keys, is_delete in zip(of_entries, columns.is_delete.tolist(), strict=True):
            for key in filter(self._candidates.__contains__, keys):
                change, is_added = found.get(key, (0, False))
                found[key] = (change + (-1 if is_delete else 1), is_added or not is_delete)
        return found


def _expired(path: str) -> None:
    _log.debug("%s has expired with its snapshot", path)
