# SPDX-License-Identifier: Apache-2.0
"""Plans which files to delete with expired snapshots: those that no kept snapshot, tag or branch
needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.deletion import (
    Candidates,
    FileClass,
    MetadataFiles,
    Protection,
    Removal,
    metadata_of,
    metadata_removals,
)
from lakeformat.paimon.deletion.changelog_ownership import NO_PRODUCER
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.protection import STATE
from lakeformat.paimon.deletion.reachable_files import (
    ALL_LISTS,
    deleted_rows,
    manifest_batches,
    none_if_missing,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.types.arrow_memory import numbers

__all__ = ["Plan", "deltas_of", "plan_changelogs", "plan_snapshots"]

_COMPACTED = 1
"""The value of ``_FILE_SOURCE`` for files of compactions; other files have 0, or null in old
tables.
"""
_TOGETHER = 32
"""The number of snapshots whose manifest lists are read at the same time."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """The files to delete, in three steps; each step starts when the step before it is complete."""

    files: list[Removal] = field(default_factory=list)
    """Deleted in step 1: data, changelog and index files."""
    manifests: list[Removal] = field(default_factory=list)
    """Deleted in step 2: statistics, and the manifests and index manifests that name the files of
    step 1.
    """
    lists: list[Removal] = field(default_factory=list)
    """Deleted in step 3: the manifest lists that name the manifests."""
    spared: int = 0
    notes: list[str] = field(default_factory=list)

    def add_metadata(self, removals: Iterable[Removal]) -> None:
        """Add removals of metadata and index files, each to the step of its kind."""
        steps = {FileClass.INDEX: self.files, FileClass.MANIFEST_LIST: self.lists}
        for removal in removals:
            steps.get(removal.kind, self.manifests).append(removal)

    @property
    def steps(self) -> tuple[list[Removal], ...]:
        """The removals of each step, in the order of the steps."""
        return (self.files, self.manifests, self.lists)


@dataclass(frozen=True, slots=True)
class _Deletions:
    """The manifest entries of the files that a snapshot deletes."""

    columns: ManifestColumns
    put_back: frozenset[str] = frozenset()
    """The keys of the deleted files that the same snapshot adds again."""


def deltas_of(handle: TableHandle, snapshots: Sequence[Snapshot]) -> list[list[ManifestMeta]]:
    """Return the delta manifests of each snapshot; an empty list if the snapshot's delta list is
    missing.
    """
    return in_parallel(handle, partial(_list_or_empty, handle, ListKind.DELTA), snapshots)


def plan_snapshots(
    handle: TableHandle,
    snapshots: Sequence[Snapshot],
    oldest: Snapshot,
    protection: Protection,
    *,
    keeps_changelogs: bool,
) -> Plan:
    """Return the plan to delete expired snapshots; ``oldest`` is the first kept snapshot after
    them.

    A file that a snapshot removed from the table is needed only by earlier snapshots. So the plan
    reads only the changes of each snapshot, and its cost does not depend on the files that are
    kept. ``protection`` finds the files that tags, branches and changelogs need. With
    ``keeps_changelogs`` the changes of the snapshots remain readable.
    """
    plan, candidates = Plan(), Candidates(handle)
    has_producer = handle.options.changelog_producer != NO_PRODUCER
    only_compacted = keeps_changelogs and not has_producer
    for snapshot in (*snapshots[1:], oldest):
        with _noting(plan, f"the list of files that snapshot {snapshot.id} deleted"):
            found = _deleted_by(handle, candidates, snapshot)
            columns = found.columns
            if only_compacted:
                columns = columns.filter(columns.file_source.numbers == _COMPACTED)
            reason = f"deleted by snapshot {snapshot.id}, and no older snapshot is left"
            candidates.add(columns, FileClass.DATA, reason, found.put_back)
    if not keeps_changelogs:
        for snapshot in snapshots:
            with _noting(plan, f"the changelog of snapshot {snapshot.id}"):
                _add_changelog(handle, candidates, snapshot)
    plan.spared = len(protection.spare(candidates))
    plan.files += candidates.removals()
    lists: tuple[ListKind, ...] = ALL_LISTS
    if keeps_changelogs:
        lists = STATE if has_producer else ()
    _plan_metadata(handle, plan, snapshots, protection, lists)
    return plan


def plan_changelogs(
    handle: TableHandle, changelogs: Sequence[Snapshot], protection: Protection
) -> Plan:
    """Return the plan to delete changelogs, whose snapshots expired earlier."""
    plan, candidates = Plan(), Candidates(handle)
    for changelog in changelogs:
        with _noting(plan, f"changelog {changelog.id}"):
            if changelog.changelog_manifest_list is not None:
                _add_changelog(handle, candidates, changelog)
            else:  # with a producer, these files are already removed
                found = _deleted_by(handle, candidates, changelog)
                reason = f"deleted by snapshot {changelog.id}, whose changelog has expired"
                candidates.add(found.columns, FileClass.DATA, reason, found.put_back)
    plan.spared = len(protection.spare(candidates))
    plan.files += candidates.removals()
    _plan_metadata(handle, plan, changelogs, protection, ALL_LISTS, with_index=False)
    return plan


def _plan_metadata(
    handle: TableHandle,
    plan: Plan,
    snapshots: Sequence[Snapshot],
    protection: Protection,
    lists: Sequence[ListKind],
    *,
    with_index: bool = True,
) -> None:
    kept = protection.metadata()

    def read(snapshot: Snapshot) -> MetadataFiles | str:
        try:
            return metadata_of(
                handle, snapshot, lists, with_index=with_index, on_missing=_log_missing
            )
        except CorruptTableError as damage:
            return f"kept the manifests of snapshot {snapshot.id}, which cannot be read: {damage}"

    for start in range(0, len(snapshots), _TOGETHER):
        some = snapshots[start : start + _TOGETHER]
        for snapshot, found in zip(some, in_parallel(handle, read, some), strict=True):
            if isinstance(found, str):
                plan.notes.append(found)
                continue
            reason = f"expired with snapshot {snapshot.id}, and no longer referenced"
            plan.add_metadata(metadata_removals(handle, found, kept, reason))
            kept.update(found)  # nothing is planned twice


def _deleted_by(handle: TableHandle, candidates: Candidates, snapshot: Snapshot) -> _Deletions:
    """Return the files that a snapshot deletes, and the keys of those that it also adds.

    A file that moves to a new level is both deleted and added. Also remove all files that the
    snapshot adds from ``candidates``: a rollback may add files that earlier snapshots deleted.
    """
    manifests = _list_or_empty(handle, ListKind.DELTA, snapshot)
    deletes = any(manifest.num_deleted_files for manifest in manifests)
    if not deletes and not len(candidates):
        return _Deletions(ManifestColumns.concat([]))
    batches = list(manifest_batches(handle, manifests, _log_missing))
    deleted = ManifestColumns.concat([deleted_rows(columns) for columns in batches])
    added = [columns.filter(~columns.is_delete) for columns in batches]
    for columns in added:
        candidates.drop_added(columns)
    if not len(deleted):
        return _Deletions(deleted)
    names = deleted.file_name.to_arrow()
    put_back = frozenset(
        key
        for columns in added
        for keys in candidates.keys(
            columns.filter(numbers(pc.is_in(columns.file_name.to_arrow(), names)))
        )
        for key in keys
    )
    return _Deletions(deleted, put_back)


def _add_changelog(handle: TableHandle, candidates: Candidates, snapshot: Snapshot) -> None:
    manifests = _list_or_empty(handle, ListKind.CHANGELOG, snapshot)
    for columns in manifest_batches(handle, manifests, _log_missing):
        reason = f"the changes of snapshot {snapshot.id}, which have expired"
        candidates.add(columns.filter(~columns.is_delete), FileClass.CHANGELOG, reason)


def _list_or_empty(handle: TableHandle, kind: ListKind, snapshot: Snapshot) -> list[ManifestMeta]:
    """Return the manifests of a manifest list of ``snapshot``.

    Return an empty list if the snapshot has no such list, or if an interrupted expiry deleted it.
    """
    name = getattr(snapshot, kind.value[0])
    if name is None:
        return []
    read: Callable[[], list[ManifestMeta]] = partial(
        manifests_of, handle.storage, handle.layout, snapshot, kind
    )
    return none_if_missing(handle, handle.layout.manifest(name), read, _log_missing) or []


def _log_missing(path: str) -> None:
    _log.debug("%s has been removed before", path)


@contextmanager
def _noting(plan: Plan, what: str) -> Iterator[None]:
    """Ignore a CorruptTableError of the block, and add a note about it to ``plan``.

    ``what`` names the metadata that the block reads. The files that this metadata lists are kept.
    """
    try:
        yield
    except CorruptTableError as damage:
        plan.notes.append(f"{what} cannot be read, so the files in it are kept: {damage}")
