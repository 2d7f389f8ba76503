# SPDX-License-Identifier: Apache-2.0
"""Merges the manifests of a table on demand, in a commit that changes nothing else.

Each commit merges manifests if enough have accumulated. Merge them on demand if a table is read
much more often than written, or after large deletions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lakeformat.errors import LakeError, SnapshotExpiredError
from lakeformat.paimon.commit.attempt import CommitIntent
from lakeformat.paimon.commit.conflict_text import Committer
from lakeformat.paimon.commit.earlier_commit_report import EarlierCommitReport
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.commit.manifest_merge import (
    ManifestMerge,
    MergeLimits,
    must_change,
    runs_of,
    with_deletions,
)
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.commit.transaction import publish_once
from lakeformat.paimon.expiry_race import again_if_overtaken, explaining_expiry
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot_if_present
from lakeformat.paimon.options.operation import Operation
from lakeformat.tables.commit_id import BATCH_IDENTIFIER, CommitId
from lakeformat.tables.compact_manifests_report import CompactManifestsReport
from lakeformat.types.count_text import counted

__all__ = ["compact_manifests", "pick_all_manifests"]

_log = logging.getLogger(__name__)
_NOTHING = "no manifest needs merging"


class _NothingToMerge(LakeError):
    """Raised if another commit has merged the manifests first."""


def compact_manifests(handle: TableHandle, *, dry_run: bool = False) -> CompactManifestsReport:
    """Merge manifests below ``manifest.target-file-size``, and drop entries of deleted files.

    Even two small neighbours are merged: ``manifest.merge-min-count`` and
    ``manifest.full-compaction-threshold-size`` are not applied. Raise UnsupportedError if the table
    cannot be committed to.
    """
    require_allowed(handle, Operation.COMMIT)
    merging = _Merging(handle)
    if latest_snapshot(handle.storage, handle.layout) is None:
        return replace(merging.report(), dry_run=dry_run, reason="the table has no snapshot")
    merge = again_if_overtaken(handle, merging.pick_newest)
    if merge is None:
        return replace(merging.report(), dry_run=dry_run)
    if dry_run:
        reason = f"would merge manifests: {merge.reason}"
        found = merging.report()
        return replace(found, dry_run=True, manifests_after=None, bytes_after=None, reason=reason)
    try:
        report = _publish(handle, merging)
    except _NothingToMerge:
        return merging.report()
    _log.info("compact manifests of %s: %s", handle.uri, report.reason)
    return report


def pick_all_manifests(
    manifests: Sequence[ManifestMeta], limits: MergeLimits
) -> ManifestMerge | None:
    """Return a merge of all small neighbours, or a full merge if a manifest has DELETE entries.

    Return None if nothing can be merged.
    """
    deletes = sum(manifest.num_deleted_files > 0 for manifest in manifests)
    runs = [*runs_of([must_change(manifest, limits) for manifest in manifests])]
    if deletes:
        reason = with_deletions(deletes, len(manifests))
        return ManifestMerge(tuple(runs), is_full=True, reason=reason)
    runs = [(start, end) for start, end in runs if end - start > 1]
    if not runs:
        return None
    small = sum(end - start for start, end in runs)
    return ManifestMerge(
        tuple(runs), is_full=False, reason=f"{small} of {len(manifests)} manifests are small"
    )


@dataclass(slots=True)
class _Merging:
    """Chooses the manifests to merge, again for each snapshot that the commit tries to build on."""

    handle: TableHandle
    before: list[ManifestMeta] = field(default_factory=list)
    merge: ManifestMerge | None = None

    def pick(self, manifests: Sequence[ManifestMeta]) -> ManifestMerge | None:
        """Choose and return the manifests to merge, and keep the choice for the report.

        Return None if there is nothing to merge.
        """
        self.before = list(manifests)
        self.merge = pick_all_manifests(manifests, MergeLimits.of(self.handle.options))
        return self.merge

    def pick_newest(self) -> ManifestMerge | None:
        storage, layout = self.handle.storage, self.handle.layout
        head = latest_snapshot(storage, layout)
        return None if head is None else self.pick(manifests_of(storage, layout, head))

    def changes(self, head: Snapshot | None) -> SnapshotDelta:
        """Return an empty change; raise ``_NothingToMerge`` if nothing is left to merge, so that no
        snapshot is published.
        """
        storage, layout = self.handle.storage, self.handle.layout
        if head is None or self.pick(manifests_of(storage, layout, head)) is None:
            raise _NothingToMerge(f"the manifests of {self.handle.uri} are merged already")
        return SnapshotDelta()

    def report(self) -> CompactManifestsReport:
        """Return a report with the number and size of the manifests before the merge.

        It also has the number of manifests to merge.
        """
        size = sum(manifest.file_size for manifest in self.before)
        runs = self.merge.runs if self.merge is not None else ()
        return CompactManifestsReport(
            table=self.handle.uri,
            dry_run=False,
            snapshot_id=None,
            manifests_before=len(self.before),
            manifests_merged=sum(end - start for start, end in runs),
            manifests_after=len(self.before),
            bytes_before=size,
            bytes_after=size,
            reason=_NOTHING,
        )


def _publish(handle: TableHandle, merging: _Merging) -> CompactManifestsReport:
    commit = CommitId(handle.environment.new_id(), BATCH_IDENTIFIER)
    intent = CommitIntent(
        who=Committer(handle, CommitKind.COMPACT, commit.user),
        provider=merging.changes,
        commit=commit,
        replay=EarlierCommitReport(handle, SnapshotDelta()),
        merge=merging.pick,
    )
    earlier = EarlierCommits(handle, commit, (CommitKind.COMPACT,), is_new=True)
    done = publish_once(handle, intent, earlier)
    report = merging.report()
    assert done.snapshot_id is not None
    report = replace(report, snapshot_id=done.snapshot_id, reason=done.reason)
    published = read_snapshot_if_present(handle.storage, handle.layout, done.snapshot_id)
    unknown = replace(report, manifests_after=None, bytes_after=None)
    if published is None:  # The snapshot has expired already, so the result is unknown.
        return unknown
    try:
        with explaining_expiry(handle, published):
            after = manifests_of(handle.storage, handle.layout, published)
    except SnapshotExpiredError:
        return unknown
    return replace(
        report,
        manifests_after=len(after),
        bytes_after=sum(manifest.file_size for manifest in after),
        reason=f"{counted(report.manifests_before, 'manifest')} became {len(after)}: {done.reason}",
    )
