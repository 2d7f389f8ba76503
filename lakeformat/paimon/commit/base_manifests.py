"""The base list of a snapshot: all manifests of its predecessor, some of them merged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakeformat.paimon.commit.attempt_files import AttemptFiles, WrittenList
from lakeformat.paimon.commit.manifest_merge import (
    ManifestMerge,
    MergeLimits,
    merge_manifests,
    pick_manifests,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["BaseManifests", "PickManifests"]

_log = logging.getLogger(__name__)

PickManifests: TypeAlias = Callable[[Sequence[ManifestMeta]], ManifestMerge | None]
"""Chooses the manifests of a list to merge; None to merge none."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """Merged manifests and their replacement."""

    before: list[ManifestMeta]
    after: list[ManifestMeta]
    written: list[str]


_NOTHING_MERGED = _Merged([], [], [])


@dataclass(slots=True)
class BaseManifests:
    """Writes the base list of successive attempts; manifests are merged in the first."""

    handle: TableHandle
    files: AttemptFiles
    pick: PickManifests | None = None
    """Chooses what a commit made for merging merges; it merges again after a lost attempt."""
    _merged: _Merged | None = field(default=None)

    @property
    def merged(self) -> list[str]:
        """Merged manifests that later attempts may reuse."""
        return self._merged.written if self._merged else []

    def written_on(self, head: Snapshot | None, *, keep_merged: bool) -> WrittenList:
        """Write the base list of a snapshot that follows ``head``.

        ``keep_merged``: do not delete merged manifests, because an earlier attempt in doubt uses
        them.
        """
        return self.files.write_list(self._merge(self._all_of(head), keep_merged=keep_merged))

    def _all_of(self, head: Snapshot | None) -> list[ManifestMeta]:
        if head is None:
            return []
        storage, layout = self.handle.storage, self.handle.layout
        return manifests_of(storage, layout, head)

    def _merge(self, manifests: list[ManifestMeta], *, keep_merged: bool) -> list[ManifestMeta]:
        """Merge some manifests in the first attempt; reuse the result in later ones."""
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
            "merged %d manifests of %s into %d%s: %s",
            len(manifests),
            self.handle.uri,
            len(after),
            " without entries of deleted files" if merge.is_full else "",
            merge.reason,
        )
        return after


def _place_in(manifests: list[ManifestMeta], part: list[ManifestMeta]) -> int | None:
    """Return the start of ``part`` as a contiguous run in a list; None if it is not one."""
    starts = range(len(manifests) - len(part) + 1)
    return next((at for at in starts if manifests[at : at + len(part)] == part), None)
