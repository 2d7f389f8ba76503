# SPDX-License-Identifier: Apache-2.0
"""Deletes the files that no snapshot needs any more after tags or a branch were deleted."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.deletion import (
    Candidates,
    Deleter,
    FileClass,
    MetadataFiles,
    Protection,
    Removal,
    add_candidates,
    bucket_directories,
    metadata_of,
    metadata_removals,
    remove_empty_directories,
)
from lakeformat.paimon.deletion.protection import lists_of_changelog
from lakeformat.paimon.deletion.reachable_files import manifest_batches
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.expired_changes import without_expired_changes
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.types.count_text import counted

__all__ = ["Lost", "remove_exclusive_files"]

_log = logging.getLogger(__name__)
_STATE = (ListKind.BASE, ListKind.DELTA)


@dataclass(frozen=True, slots=True)
class Lost:
    """The snapshots that no tag or branch keeps after a deletion."""

    states: Sequence[Snapshot]
    """Snapshots whose files are all deleted, except files that another snapshot needs."""
    additions: Sequence[Snapshot] = ()
    """Snapshots whose added files are deleted; their other files are kept."""
    changelogs: Sequence[Snapshot] = ()
    """Long-lived changelogs whose files are deleted: their changelog files or, if they have none,
    the data files that their commit added.
    """
    with_changes: bool = False
    """True if the changelog files of ``states`` and ``additions`` are deleted, too."""

    @property
    def all(self) -> tuple[Snapshot, ...]:
        return (*self.states, *self.additions, *self.changelogs)


def remove_exclusive_files(
    handle: TableHandle,
    lost: Lost,
    protection: Protection,
    deleter: Deleter,
    reason: str,
    *,
    dry_run: bool,
) -> bool:
    """Delete those files of the lost snapshots that nothing protects.

    Return False if a file could not be deleted. Data files are deleted before the manifests that
    name them, and manifest lists last. So after a crash the next run finds the remaining files: if
    a manifest is missing, its data files were deleted already.
    """
    data = _data_files(handle, lost, reason)
    protection.spare(data)
    buckets = bucket_directories(handle, data.removals())
    if not deleter.remove(data.removals()):
        return False
    metadata = [*_metadata(handle, lost, protection, reason)]
    lists = [each for each in metadata if each.kind is FileClass.MANIFEST_LIST]
    others = [each for each in metadata if each.kind is not FileClass.MANIFEST_LIST]
    done = deleter.remove(others) and deleter.remove(lists)
    if done and not dry_run and handle.options.snapshot_clean_empty_directories:
        remove_empty_directories(handle, buckets)
    return done


def _data_files(handle: TableHandle, lost: Lost, reason: str) -> Candidates:
    found = Candidates(handle)
    for snapshot in lost.states:
        _add_live(found, _entries(handle, snapshot, *_STATE), reason)
    for snapshot in lost.additions:
        add_candidates(found, _entries(handle, snapshot, ListKind.DELTA), FileClass.DATA, reason)
    for snapshot in lost.changelogs:
        for which in lists_of_changelog(handle, snapshot):
            kind = FileClass.CHANGELOG if which is ListKind.CHANGELOG else FileClass.DATA
            if which is not ListKind.BASE:
                add_candidates(found, _entries(handle, snapshot, which), kind, reason)
    if lost.with_changes:
        for snapshot in (*lost.states, *lost.additions):
            entries = _entries(handle, snapshot, ListKind.CHANGELOG)
            add_candidates(found, entries, FileClass.CHANGELOG, reason)
    return found


def _add_live(found: Candidates, entries: Iterable[ManifestColumns], reason: str) -> None:
    """Add the live files of a snapshot to ``found``.

    The manifest entries may come in any order. If manifests are missing, files that were not live
    may be added, too.
    """
    net: dict[str, int] = {}
    fresh: set[str] = set()
    """Files that ``found`` lacked before this call: only these may be removed from it again."""
    for columns in entries:
        keys = found.keys(columns)
        fresh.update(key for key in chain.from_iterable(keys) if key not in found)
        found.add(columns.filter(~columns.is_delete), FileClass.DATA, reason)
        for of_entry, delete in zip(keys, columns.is_delete.tolist(), strict=True):
            for key in of_entry:
                net[key] = net.get(key, 0) + (-1 if delete else 1)
    found.drop(key for key in fresh if net[key] <= 0)


def _entries(
    handle: TableHandle, snapshot: Snapshot, *which: ListKind
) -> Iterator[ManifestColumns]:
    gone: list[str] = []
    yield from manifest_batches(handle, _manifests(handle, snapshot, *which), gone.append)
    if gone:
        _log.info(
            "skipped %s that an earlier attempt has deleted (snapshot %d of %s)",
            *(counted(len(gone), "manifest"), snapshot.id, handle.uri),
        )


def _manifests(handle: TableHandle, snapshot: Snapshot, *which: ListKind) -> list[ManifestMeta]:
    found: list[ManifestMeta] = []
    for kind in which:
        name = getattr(snapshot, kind.value[0])
        try:
            found += manifests_of(handle.storage, handle.layout, snapshot, kind)
        except CorruptTableError:
            if handle.storage.exists(handle.layout.manifest(name)):
                raise
    return found


def _metadata(
    handle: TableHandle, lost: Lost, protection: Protection, reason: str
) -> Iterable[Removal]:
    found, kept = MetadataFiles(), protection.metadata()
    gone: list[str] = []
    for snapshot in (*lost.states, *lost.additions):
        lists = tuple(ListKind) if lost.with_changes else _STATE
        found.update(metadata_of(handle, snapshot, lists, on_missing=gone.append))
    for snapshot in lost.changelogs:
        lists = lists_of_changelog(handle, snapshot)
        found.update(metadata_of(handle, snapshot, lists, with_index=False, on_missing=gone.append))
    for snapshot in _between(handle, lost, protection):
        kept.update(metadata_of(handle, snapshot))
    return metadata_removals(handle, found, kept, reason)


def _between(handle: TableHandle, lost: Lost, protection: Protection) -> Iterator[Snapshot]:
    """Yield the kept snapshots that may need a manifest of a lost snapshot.

    If all lost snapshots are older than the oldest kept snapshot, yield nothing: the oldest kept
    snapshot names all such manifests, and ``Protection.metadata`` already has them. Otherwise,
    yield every kept snapshot.
    """
    if protection.oldest is None:
        return
    newest = max((snapshot.id for snapshot in lost.all), default=0)
    if newest < protection.oldest.id:
        return
    storage, layout, is_first = handle.storage, handle.layout, True
    for number in snapshot_ids(storage, layout):
        found = read_snapshot_if_present(storage, layout, number)
        if found is not None:
            yield without_expired_changes(storage, layout, found) if is_first else found
            is_first = False
