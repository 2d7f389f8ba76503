# SPDX-License-Identifier: Apache-2.0
"""Merges the manifests of a table on demand, in a commit that changes nothing else.

Java's ``rewrite_manifests`` does the same, but for one partition spec. Data files, sequence numbers
and row ids do not change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.branch_history import history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact_manifests.manifest_groups import ManifestGroup, due_groups
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.write.counts import FileCounts
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.tables.compact_manifests_report import CompactManifestsReport
from lakeformat.types.count_text import counted

__all__ = ["compact_manifests"]

_log = logging.getLogger(__name__)


def compact_manifests(handle: TableHandle, *, dry_run: bool = False) -> CompactManifestsReport:
    """Merge small manifests, sort their entries by partition, and drop entries of deleted files.

    Other writers are not blocked: their commits in the meantime are kept. If a commit replaced
    manifests, the manifests to merge are chosen again. A dry run only chooses them.
    """
    merge = _Merge()
    if dry_run:
        loaded = handle.load()
        merge.choose(loaded, _newest_manifests(handle, loaded))
        return _report(handle, merge, None, dry_run=True)
    handle.pointer.require_writable()
    published = publish_change(handle, merge, commit=None)
    snapshot = published.snapshot
    report = _report(handle, merge, None if snapshot is None else snapshot.snapshot_id)
    _log.info("compact manifests of %s: %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _Merge:
    """The change that replaces manifests by merged ones; all attempts of a commit use the same
    merged manifests.
    """

    groups: list[ManifestGroup] | None = None
    before: pa.Table = field(default_factory=MANIFEST_SCHEMA.empty_table)
    after: pa.Table = field(default_factory=MANIFEST_SCHEMA.empty_table)
    _choices: int = 0

    def __call__(self, base: Base) -> FileChange | None:
        """Return the change for the newest snapshot; None if no manifest needs merging.

        The manifests are chosen again if another commit replaced one of them, or upgraded the
        table.
        """
        version = base.loaded.metadata.format_version
        if self.groups is None or not _has_all(base.manifests, self.groups, version):
            self.choose(base.loaded, base.manifests)
        self.before = base.manifests
        if not self.groups:
            return None
        is_replaced = pc.is_in(base.manifests.column("manifest_path"), _paths(self.groups))
        kept = base.manifests.filter(pc.invert(is_replaced))
        self.after = pa.concat_tables([*self._merged(base, self.groups), kept])
        entries = sum(len(each.entries) for each in self.groups)
        more = {"entries-processed": str(entries)}
        return FileChange("replace", self.after, FileCounts(), more=more)

    def choose(self, loaded: LoadedMetadata, manifests: pa.Table) -> None:
        self.before, self._choices = manifests, self._choices + 1
        self.groups = [*due_groups(loaded, manifests)]

    def _merged(self, base: Base, groups: list[ManifestGroup]) -> list[pa.Table]:
        return [
            self._manifest(base, (number, place), group, part)
            for number, group in enumerate(groups)
            for place, part in enumerate(group.parts())
        ]

    def _manifest(
        self, base: Base, place: tuple[int, int], group: ManifestGroup, entries: pa.Table
    ) -> pa.Table:
        key = ("compacted", self._choices, *place)
        return base.files.manifest(key, group.writer, lambda: entries, base.snapshot)


def _has_all(manifests: pa.Table, groups: list[ManifestGroup], version: int) -> bool:
    """Return True if the chosen groups can still be merged.

    All their manifests must still be in ``manifests`` with the same row ids, and the table must
    still have the format ``version`` for which they were chosen.
    """
    if any(group.writer.metadata.format_version != version for group in groups):
        return False
    listed = {*_identities(manifests)}
    return all(each in listed for group in groups for each in _identities(group.manifests))


def _identities(manifests: pa.Table) -> list[tuple[str, int | None]]:
    columns = (manifests.column(name).to_pylist() for name in ("manifest_path", "first_row_id"))
    return [*zip(*columns, strict=True)]


def _paths(groups: list[ManifestGroup]) -> pa.Array:
    columns = [group.manifests.column("manifest_path").combine_chunks() for group in groups]
    return pa.concat_arrays(columns)


def _newest_manifests(handle: TableHandle, loaded: LoadedMetadata) -> pa.Table:
    history = history_of(loaded.metadata, handle.branch, handle.uri)
    if not history.snapshots:
        return MANIFEST_SCHEMA.empty_table()
    return read_manifest_list(loaded.places, history.snapshots[-1].snapshot)


def _report(
    handle: TableHandle, merge: _Merge, snapshot_id: int | None, *, dry_run: bool = False
) -> CompactManifestsReport:
    groups = merge.groups or []
    after = merge.before if snapshot_id is None else merge.after
    is_planned = dry_run and bool(groups)
    why = "; ".join(each.reason for each in groups)
    reason = "no manifest needs merging"
    if is_planned:
        reason = f"would merge manifests: {why}"
    elif snapshot_id is not None:
        before = counted(len(merge.before), "manifest")
        reason = f"{before} became {len(after)}, published as snapshot {snapshot_id}: {why}"
    return CompactManifestsReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshot_id=snapshot_id,
        manifests_before=len(merge.before),
        manifests_merged=sum(len(each.manifests) for each in groups),
        manifests_after=None if is_planned else len(after),
        bytes_before=_bytes(merge.before),
        bytes_after=None if is_planned else _bytes(after),
        reason=reason,
    )


def _bytes(manifests: pa.Table) -> int:
    return int(pc.sum(manifests.column("manifest_length")).as_py() or 0)
