"""The base list of a snapshot: every manifest of the one before it, some of them merged."""

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
"""Which manifests of a list are merged; None for none of them."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """Manifests that were merged, and what took their place."""

    before: list[ManifestMeta]
    after: list[ManifestMeta]
    written: list[str]


_NOTHING_MERGED = _Merged([], [], [])


@dataclass(slots=True)
class BaseManifests:
    """Writes the base list of one attempt after the other, merging at the first."""

    handle: TableHandle
    files: AttemptFiles
    pick: PickManifests | None = None
    """For a commit that is made to merge: what; it merges anew where an attempt is overtaken."""
    _merged: _Merged | None = field(default=None)

    @property
    def merged(self) -> list[str]:
        """The merged manifests that later attempts may use."""
        return self._merged.written if self._merged else []

    def written_on(self, head: Snapshot | None, *, keep_merged: bool) -> WrittenList:
        """The base list of a snapshot that follows ``head``.

        ``keep_merged``: an earlier attempt, which may be published, refers to what was merged.
        """
        return self.files.write_list(self._merge(self._all_of(head), keep_merged=keep_merged))

    def _all_of(self, head: Snapshot | None) -> list[ManifestMeta]:
        if head is None:
            return []
        storage, layout = self.handle.storage, self.handle.layout
        return manifests_of(storage, layout, head)

    def _merge(self, manifests: list[ManifestMeta], *, keep_merged: bool) -> list[ManifestMeta]:
        """The manifests with some merged: now in the first attempt, as then in a later one."""
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
            "manifests merged table=%s before=%d after=%d full=%s reason=%s",
            *(self.handle.uri, len(manifests), len(after), merge.is_full, merge.reason),
        )
        return after


def _place_in(manifests: list[ManifestMeta], part: list[ManifestMeta]) -> int | None:
    """Where ``part`` starts as neighbours in a list; None if it is not there whole."""
    starts = range(len(manifests) - len(part) + 1)
    return next((at for at in starts if manifests[at : at + len(part)] == part), None)
