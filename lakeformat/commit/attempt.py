"""The metadata files of one append: what is written once, and what each attempt writes anew."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeformat.commit.identity import CommitId
from lakeformat.commit.manifest_merge import (
    MergeLimits,
    merge_manifests,
    partition_types,
    pick_manifests,
)
from lakeformat.commit.publish import Outcome, publish
from lakeformat.errors import LakeError
from lakeformat.handle import TableHandle
from lakeformat.layout import manifest_list_name, manifest_name
from lakeformat.metadata.manifest import ManifestEntry, write_manifest
from lakeformat.metadata.manifest_list import (
    ManifestMeta,
    read_manifest_list,
    summarise,
    write_manifest_list,
)
from lakeformat.metadata.schema_file import latest_schema_id
from lakeformat.metadata.snapshot import CommitKind, Snapshot
from lakeformat.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    read_snapshot_if_present,
)

__all__ = ["AppendAttempts"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WrittenList:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class _Merged:
    """Manifests that were merged, and what took their place."""

    before: list[ManifestMeta]
    after: list[ManifestMeta]
    written: list[str]


@dataclass(slots=True)
class AppendAttempts:
    """All attempts of one append.

    The manifest of the new files and its list do not depend on the head: they are written
    once. The base list, and the snapshot, belong to one attempt. Older manifests are merged
    in the first attempt only, and later ones use that as long as it fits.
    """

    handle: TableHandle
    entries: tuple[ManifestEntry, ...]
    commit: CommitId
    watermark: int | None
    properties: Mapping[str, str]
    _doubtful: dict[str, int] = field(default_factory=dict)
    """Snapshots of which the storage left open whether they are published: uuid to number."""
    _unique: str = ""
    _lists: int = 0
    _manifests: int = 0
    _delta: _WrittenList | None = None
    _merged: _Merged | None = None
    _files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._unique = self.handle.environment.new_id()

    def snapshot_on(self, head: Snapshot | None) -> Snapshot:
        """Write what a snapshot following ``head`` needs, and build it."""
        try:
            return self._build_on(head)
        except BaseException:
            self.discard()
            raise

    @property
    def in_doubt(self) -> bool:
        """Whether some attempt may have been published: then no file may be removed."""
        return bool(self._doubtful)

    def publish(self, snapshot: Snapshot) -> Outcome:
        """Publish what ``snapshot_on`` built; until the storage answers, it is in doubt."""
        assert snapshot.uuid is not None
        self._doubtful[snapshot.uuid] = snapshot.id
        outcome = publish(self.handle, snapshot)
        if outcome is Outcome.LOST:
            del self._doubtful[snapshot.uuid]
            self._delete([snapshot.base_manifest_list])
        return outcome

    def resolve_doubt(self) -> Snapshot | None:
        """The snapshot of ours that is published after all; a number taken by another is not."""
        storage, layout = self.handle.storage, self.handle.layout
        for uuid, number in list(self._doubtful.items()):
            snapshot = read_snapshot_if_present(storage, layout, number)
            if snapshot is not None and snapshot.uuid == uuid:
                return snapshot
            if snapshot is not None:
                del self._doubtful[uuid]
        return None

    def discard(self) -> None:
        """Remove every file of every attempt, unless one of them may have been published."""
        if not self.in_doubt:
            self._delete(self._files)

    def _build_on(self, head: Snapshot | None) -> Snapshot:
        base = self._write_list(self._merge(self._base_manifests(head)))
        delta = self._delta or self._write_delta()
        added = sum(entry.file.row_count for entry in self.entries)
        return Snapshot(
            id=head.id + 1 if head else FIRST_SNAPSHOT_ID,
            uuid=self.handle.environment.new_id(),
            schema_id=self._schema_id(),
            base_manifest_list=base.name,
            base_manifest_list_size=base.size,
            delta_manifest_list=delta.name,
            delta_manifest_list_size=delta.size,
            index_manifest=head.index_manifest if head else None,
            commit_user=self.commit.user,
            commit_identifier=self.commit.identifier,
            commit_kind=CommitKind.APPEND,
            time_millis=self.handle.environment.now_millis(),
            total_record_count=(head.total_record_count if head else 0) + added,
            delta_record_count=added,
            watermark=_later(self.watermark, head.watermark if head else None),
            statistics=self._statistics(head),
            properties=self.properties or None,
            next_row_id=(head.next_row_id if head else None) or 0,
        )

    def _base_manifests(self, head: Snapshot | None) -> list[ManifestMeta]:
        if head is None:
            return []
        storage, layout = self.handle.storage, self.handle.layout
        return [
            *read_manifest_list(storage, layout, head.base_manifest_list),
            *read_manifest_list(storage, layout, head.delta_manifest_list),
        ]

    def _merge(self, manifests: list[ManifestMeta]) -> list[ManifestMeta]:
        """The manifests with some merged: now in the first attempt, as then in a later one."""
        if self._merged is None:
            return self._merge_now(manifests)
        merged = self._merged
        start = _place_in(manifests, merged.before)
        if start is not None:
            return [*manifests[:start], *merged.after, *manifests[start + len(merged.before) :]]
        if not self.in_doubt:
            self._delete(merged.written)
        self._merged = _Merged([], [], [])
        return manifests

    def _merge_now(self, manifests: list[ManifestMeta]) -> list[ManifestMeta]:
        merge = pick_manifests(manifests, MergeLimits.of(self.handle.options))
        if merge is None:
            self._merged = _Merged([], [], [])
            return manifests
        known = len(self._files)
        after = merge_manifests(self.handle, manifests, merge, self._new_manifest)
        self._merged = _Merged(manifests, after, self._files[known:])
        _log.info(
            "manifests merged table=%s before=%d after=%d full=%s reason=%s",
            *(self.handle.uri, len(manifests), len(after), merge.is_full, merge.reason),
        )
        return after

    def _new_manifest(self) -> str:
        """A name nobody else uses, remembered so that ``discard`` removes its file."""
        name = manifest_name(self._unique, self._manifests)
        self._manifests += 1
        self._files.append(name)
        return name

    def _write_delta(self) -> _WrittenList:
        handle = self.handle
        name = self._new_manifest()
        size = write_manifest(handle.storage, handle.layout, name, self.entries, handle.options)
        summary = summarise(name, size, self.entries, partition_types(handle))
        self._delta = self._write_list([summary])
        return self._delta

    def _write_list(self, manifests: list[ManifestMeta]) -> _WrittenList:
        handle = self.handle
        name = manifest_list_name(self._unique, self._lists)
        self._lists += 1
        self._files.append(name)
        size = write_manifest_list(handle.storage, handle.layout, name, manifests, handle.options)
        return _WrittenList(name, size)

    def _schema_id(self) -> int:
        """The schema in force now, which may be newer than the writer's."""
        latest = latest_schema_id(self.handle.storage, self.handle.layout)
        return self.handle.schema.id if latest is None else latest

    def _statistics(self, head: Snapshot | None) -> str | None:
        same_schema = head is not None and head.schema_id == self._schema_id()
        return head.statistics if head is not None and same_schema else None

    def _delete(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(LakeError):  # what stays behind is an orphan, not damage
                self.handle.storage.delete(self.handle.layout.manifest(name))


def _place_in(manifests: list[ManifestMeta], part: list[ManifestMeta]) -> int | None:
    """Where ``part`` starts as neighbours in a list; None if it is not there whole."""
    starts = range(len(manifests) - len(part) + 1)
    return next((at for at in starts if manifests[at : at + len(part)] == part), None)


def _later(first: int | None, second: int | None) -> int | None:
    present = [value for value in (first, second) if value is not None]
    return max(present, default=None)
