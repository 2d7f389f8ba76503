# SPDX-License-Identifier: Apache-2.0
"""Writes the metadata files of one commit: manifests, manifest lists and index manifests."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakeformat.errors import LakeError
from lakeformat.paimon.commit.manifest_merge import (
    ManifestMerge,
    MergeLimits,
    merge_manifests,
    partition_types,
    pick_manifests,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import index_manifest_name, manifest_list_name, manifest_name
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, write_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns, write_columns
from lakeformat.paimon.metadata.manifest_list import (
    ManifestMeta,
    manifests_of,
    summarise_columns,
    write_manifest_list,
)
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.types.count_text import counted

__all__ = ["AttemptFiles", "BaseManifests", "PickManifests", "WrittenList"]

_log = logging.getLogger(__name__)

PickManifests: TypeAlias = Callable[[Sequence[ManifestMeta]], ManifestMerge | None]
"""Chooses which manifests of a manifest list to merge; returns None to merge none."""


@dataclass(frozen=True, slots=True)
class WrittenList:
    """The name of a manifest list and its size in bytes, as a snapshot refers to it."""

    name: str
    size: int


@dataclass(slots=True)
class AttemptFiles:
    """Writes metadata files whose names have one new uuid and consecutive numbers.

    Each name is recorded before its file is written, so that no written file is missing from the
    record after an error.
    """

    handle: TableHandle
    _unique: str = ""
    _lists: int = 0
    _manifests: int = 0
    _index_manifests: int = 0
    _written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._unique = self.handle.environment.new_id()

    @property
    def mark(self) -> int:
        """The number of names recorded so far; pass it to ``since`` to get the later names."""
        return len(self._written)

    def since(self, mark: int) -> list[str]:
        """Return the names recorded after ``mark`` was taken."""
        return self._written[mark:]

    def new_manifest(self) -> str:
        """Record and return the name of the next manifest."""
        name = manifest_name(self._unique, self._manifests)
        self._manifests += 1
        self._written.append(name)
        return name

    def write_entries(self, columns: ManifestColumns) -> WrittenList:
        """Write a manifest with the entries, and a manifest list that names it.

        Without entries, write only an empty list.
        """
        if not len(columns):
            return self.write_list([])
        handle, name = self.handle, self.new_manifest()
        size = write_columns(handle.storage, handle.layout, name, columns, handle.options)
        return self.write_list([summarise_columns(name, size, columns, partition_types(handle))])

    def write_list(self, manifests: Sequence[ManifestMeta]) -> WrittenList:
        """Write a manifest list that names ``manifests``."""
        handle = self.handle
        name = manifest_list_name(self._unique, self._lists)
        self._lists += 1
        self._written.append(name)
        size = write_manifest_list(handle.storage, handle.layout, name, manifests, handle.options)
        return WrittenList(name, size)

    def write_index_manifest(self, entries: Sequence[IndexManifestEntry]) -> str:
        """Write an index manifest with the entries, and return its name."""
        handle = self.handle
        name = index_manifest_name(self._unique, self._index_manifests)
        self._index_manifests += 1
        self._written.append(name)
        write_index_manifest(handle.storage, handle.layout, name, entries, handle.options)
        return name

    def delete(self, names: Iterable[str]) -> None:
        """Delete metadata files to which no snapshot refers; a failure leaves a harmless orphan."""
        for name in names:
            # a file that could not be deleted is a harmless orphan
            with contextlib.suppress(LakeError):
                self.handle.storage.delete(self.handle.layout.manifest(name))

    def delete_all(self) -> None:
        """Delete every recorded file."""
        self.delete(self._written)


@dataclass(frozen=True, slots=True)
class _Merged:
    """The manifest list ``before`` and ``after`` the merge, and the names of the new manifests."""

    before: list[ManifestMeta]
    after: list[ManifestMeta]
    written: list[str]


_NOTHING_MERGED = _Merged([], [], [])


@dataclass(slots=True)
class BaseManifests:
    """Writes the base manifest list of each attempt, and merges manifests for it."""

    handle: TableHandle
    files: AttemptFiles
    pick: PickManifests | None = None
    """Chooses the manifests to merge, and chooses again if an attempt cannot reuse the merge.

    None: follow the table options, and merge only in the first attempt.
    """
    _merged: _Merged | None = field(default=None)

    @property
    def merged(self) -> list[str]:
        """The names of the manifests that the merge wrote; later attempts may reuse them."""
        return self._merged.written if self._merged else []

    def written_on(self, head: Snapshot | None, *, keep_merged: bool) -> WrittenList:
        """Write the base manifest list of a snapshot that follows ``head``.

        If this attempt cannot reuse the merge of an earlier attempt, it deletes the manifests of
        that merge. Set ``keep_merged`` to keep them if an earlier attempt may have been published.
        """
        return self.files.write_list(self._merge(self._all_of(head), keep_merged=keep_merged))

    def _all_of(self, head: Snapshot | None) -> list[ManifestMeta]:
        if head is None:
            return []
        storage, layout = self.handle.storage, self.handle.layout
        return manifests_of(storage, layout, head)

    def _merge(self, manifests: list[ManifestMeta], *, keep_merged: bool) -> list[ManifestMeta]:
        """Return ``manifests`` after the merge, or unchanged if there is nothing to merge.

        The first attempt merges. A later attempt reuses that merge if ``manifests`` still contains
        the whole list from before the merge. Otherwise it drops the merge, and deletes the
        manifests that the merge wrote, unless ``keep_merged`` is True. Then it merges again only if
        ``pick`` is set.
        """
        if self._merged is None:
            return self._merge_now(manifests)
        merged = self._merged
        start = _place_in(manifests, merged.before)
        if start is not None:
            return [*manifests[:start], *merged.after, *manifests[start + len(merged.before) :]]
        if not keep_merged:
            self.files.delete(merged.written)
        self._merged = _NOTHING_MERGED
        return manifests if self.pick is None else self._merge_now(manifests)

    def _merge_now(self, manifests: list[ManifestMeta]) -> list[ManifestMeta]:
        limits = MergeLimits.of(self.handle.options)
        pick = self.pick
        merge = pick_manifests(manifests, limits) if pick is None else pick(manifests)
        if merge is None:
            self._merged = _NOTHING_MERGED
            return manifests
        mark = self.files.mark
        after = merge_manifests(self.handle, manifests, merge, self.files.new_manifest)
        self._merged = _Merged(manifests, after, self.files.since(mark))
        _log.info(
            "merged %s of %s into %d: %s",
            *(counted(len(manifests), "manifest"), self.handle.uri, len(after), merge.reason),
        )
        return after


def _place_in(manifests: list[ManifestMeta], part: list[ManifestMeta]) -> int | None:
    """Return the index at which ``part`` begins in ``manifests`` as a contiguous run, else None."""
    starts = range(len(manifests) - len(part) + 1)
    return next((at for at in starts if manifests[at : at + len(part)] == part), None)
