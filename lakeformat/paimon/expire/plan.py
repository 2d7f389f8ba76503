"""Which files go with some snapshots: those that nothing which stays leads to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
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
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["Plan", "deltas_of", "plan_changelogs", "plan_snapshots"]

_COMPACTED = 1
"""The source of files that a compaction wrote; of others 0, or nothing in old tables."""
_TOGETHER = 32
"""Snapshots whose manifests are listed at a time."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """Files in the order they go: each step begins when the one before is done."""

    files: list[Removal] = field(default_factory=list)
    """Data, changelog and index files."""
    manifests: list[Removal] = field(default_factory=list)
    """What names those, and statistics."""
    lists: list[Removal] = field(default_factory=list)
    """What names manifests."""
    spared: int = 0
    notes: list[str] = field(default_factory=list)

    def add_metadata(self, removals: Iterable[Removal]) -> None:
        """Put metadata and index files into the steps they belong to."""
        steps = {FileClass.INDEX: self.files, FileClass.MANIFEST_LIST: self.lists}
        for removal in removals:
            steps.get(removal.kind, self.manifests).append(removal)

    @property
    def steps(self) -> tuple[list[Removal], ...]:
        """The files step by step."""
        return (self.files, self.manifests, self.lists)


@dataclass(frozen=True, slots=True)
class _Deletions:
    """The entries a snapshot takes out."""

    columns: ManifestColumns
    put_back: frozenset[str] = frozenset()
    """Files of theirs that it leads to all the same, by other entries."""


def deltas_of(handle: TableHandle, snapshots: Sequence[Snapshot]) -> list[list[ManifestMeta]]:
    """The manifests of what each snapshot changed; none of those that are gone already."""
    return in_parallel(handle, partial(_list_or_gone, handle, ListKind.DELTA), snapshots)


def plan_snapshots(
    handle: TableHandle,
    snapshots: Sequence[Snapshot],
    oldest: Snapshot,
    protection: Protection,
    *,
    keeps_changelogs: bool,
) -> Plan:
    """The files that go with snapshots, of which ``oldest`` is the first after them that stays.

    A file was last needed by the snapshot before the one that deletes it. Which ones that are is
    read from what each changed, so that it takes as long as there is to remove, however much
    stays. With ``keeps_changelogs``, what they have changed can still be read afterwards.
    """
    plan, candidates = Plan(), Candidates(handle)
    has_producer = handle.options.changelog_producer != NO_PRODUCER
    only_compacted = keeps_changelogs and not has_producer
    for snapshot in (*snapshots[1:], oldest):
        with _noting(plan, f"what snapshot {snapshot.id} deleted"):
            found = _deleted_by(handle, candidates, snapshot)
            columns = found.columns
            if only_compacted:
                columns = columns.filter(columns.file_source.numbers == _COMPACTED)
            reason = f"deleted by snapshot {snapshot.id}, and no older one is left"
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
    """The files that go with changelogs whose snapshots have expired before."""
    plan, candidates = Plan(), Candidates(handle)
    for changelog in changelogs:
        with _noting(plan, f"changelog {changelog.id}"):
            if changelog.changelog_manifest_list is not None:
                _add_changelog(handle, candidates, changelog)
            else:  # with a producer that is gone already
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
            return metadata_of(handle, snapshot, lists, with_index=with_index, on_missing=_log_gone)
        except CorruptTableError as damage:
            return f"the manifests of snapshot {snapshot.id} are left: {damage}"

    for start in range(0, len(snapshots), _TOGETHER):
        some = snapshots[start : start + _TOGETHER]
        for snapshot, found in zip(some, in_parallel(handle, read, some), strict=True):
            if isinstance(found, str):
                plan.notes.append(found)
                continue
            reason = f"expired with snapshot {snapshot.id}, and nothing that stays leads to it"
            plan.add_metadata(metadata_removals(handle, found, kept, reason))
            kept.update(found)  # nothing is planned twice


def _deleted_by(handle: TableHandle, candidates: Candidates, snapshot: Snapshot) -> _Deletions:
    """What a snapshot took out and did not put back at once, as it does with one of a new level.

    What it has added is needed again if an earlier one took it out: going back does so.
    """
    manifests = _list_or_gone(handle, ListKind.DELTA, snapshot)
    deletes = any(manifest.num_deleted_files for manifest in manifests)
    if not deletes and not len(candidates):
        return _Deletions(ManifestColumns.concat([]))
    batches = list(manifest_batches(handle, manifests, _log_gone))
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
            columns.filter(_numpy(pc.is_in(columns.file_name.to_arrow(), names)))
        )
        for key in keys
    )
    return _Deletions(deleted, put_back)


def _numpy(mask: pa.BooleanArray) -> Mask:
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found


def _add_changelog(handle: TableHandle, candidates: Candidates, snapshot: Snapshot) -> None:
    manifests = _list_or_gone(handle, ListKind.CHANGELOG, snapshot)
    for columns in manifest_batches(handle, manifests, _log_gone):
        reason = f"the changes of snapshot {snapshot.id}, which have expired"
        candidates.add(columns.filter(~columns.is_delete), FileClass.CHANGELOG, reason)


def _list_or_gone(handle: TableHandle, kind: ListKind, snapshot: Snapshot) -> list[ManifestMeta]:
    """The manifests of a list; none if it is gone, as after an expiry that was interrupted."""
    name = getattr(snapshot, kind.value[0])
    if name is None:
        return []
    read: Callable[[], list[ManifestMeta]] = partial(
        manifests_of, handle.storage, handle.layout, snapshot, kind
    )
    return none_if_missing(handle, handle.layout.manifest(name), read, _log_gone) or []


def _log_gone(path: str) -> None:
    _log.debug("%s has been removed before", path)


@contextmanager
def _noting(plan: Plan, what: str) -> Iterator[None]:
    """Leave out what is damaged, and say so: no file goes for one that cannot be read."""
    try:
        yield
    except CorruptTableError as damage:
        plan.notes.append(f"{what} cannot be read, so its files are left: {damage}")
