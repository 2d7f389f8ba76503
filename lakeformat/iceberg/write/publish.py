# SPDX-License-Identifier: Apache-2.0
"""Publishes changed files as a new snapshot of a branch, once for each commit identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.identity import find_commit, identity_summary
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import (
    add_snapshot,
    new_snapshot_id,
    next_sequence_number,
    next_timestamp,
)
from lakeformat.iceberg.write.counts import (
    FileCounts,
    change_summary,
    manifest_summary,
    total_summary,
    totals_in,
)
from lakeformat.iceberg.write.known_counts import with_counts
from lakeformat.iceberg.write.manifest_files import ManifestFiles
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.position import MAIN_BRANCH

__all__ = [
    "Base",
    "FileChange",
    "Produce",
    "PublishedChange",
    "publish_change",
    "with_first_row_ids",
]

_DATA = 0


@dataclass(frozen=True, slots=True)
class Base:
    """The input of one attempt: the newest snapshot, and the new snapshot that follows it."""

    loaded: LoadedMetadata
    parent: Snapshot | None
    manifests: pa.Table
    """The manifests of the parent snapshot."""
    snapshot: Snapshot
    """The snapshot that the attempt makes; its summary is still missing."""
    files: ManifestFiles
    """Writes the manifests of the commit."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The manifests of a new snapshot, and counts of what changed."""

    operation: str
    manifests: pa.Table
    added: FileCounts
    removed: FileCounts = field(default_factory=FileCounts)
    partitions: int = 0
    """The number of partitions with changed files."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further members of the snapshot summary."""
    removed_files: Sequence[pa.Table] = ()
    """The manifest entries of the removed files, in tables that each have one partition spec.

    Empty if the function that made the change does not list them.
    """
    statistics: StatisticsFile | None = None
    """A file of statistics that the metadata names for the new snapshot; None for no such file."""
    alter: Callable[[TableMetadata], TableMetadata] | None = None
    """A change of the metadata besides the new snapshot, in the same commit; None for no such
    change.
    """


class Produce(Protocol):
    """A function that makes the change of one attempt; it returns None if nothing changes."""

    def __call__(self, base: Base) -> FileChange | None: ...


@dataclass(frozen=True, slots=True)
class PublishedChange:
    """The result of a commit that raised no error."""

    snapshot: Snapshot | None
    """The snapshot with the change; None if nothing changed."""
    attempts: int
    is_replayed: bool
    """True if an earlier attempt with the same identity had already published the change."""


def publish_change(
    handle: TableHandle,
    produce: Produce,
    *,
    commit: CommitId | None,
    properties: Mapping[str, str] | None = None,
    planned: LoadedMetadata | None = None,
) -> PublishedChange:
    """Publish the change that ``produce`` makes for the newest snapshot.

    A repeated call with the same ``commit`` publishes nothing again. ``planned`` is the metadata
    for which the files were written. Raise ``TableReplacedError`` if the table was dropped and
    created again since then. Raise ``CommitConflictError`` if other writers were first in each
    attempt, or if ``produce`` found a conflict.
    """
    attempts = _Attempts(handle, produce, commit, dict(properties or {}), planned or handle.load())
    with kept_if_published(attempts.delete_all):
        result = commit_metadata(handle, attempts.change, planned=planned)
    if attempts.own is not None:
        return PublishedChange(attempts.own, result.attempts, is_replayed=False)
    if not result.is_published:
        attempts.delete_all()
        return PublishedChange(attempts.earlier, result.attempts, attempts.earlier is not None)
    assert attempts.newest is not None
    attempts.delete_unused()
    return PublishedChange(attempts.newest, result.attempts, is_replayed=False)


class _Attempts:
    """The attempts of one commit, which share the snapshot id and manifests."""

    def __init__(
        self,
        handle: TableHandle,
        produce: Produce,
        commit: CommitId | None,
        properties: dict[str, str],
        loaded: LoadedMetadata,
    ) -> None:
        self._handle, self._produce, self._commit = handle, produce, commit
        self._properties = properties
        self._id = new_snapshot_id(loaded.metadata, handle.environment.new_id)
        self._files = ManifestFiles(loaded, handle.environment)
        self._used: list[str] = []
        self.newest: Snapshot | None = None
        self.earlier: Snapshot | None = None
        self.own: Snapshot | None = None
        """The snapshot of an attempt that was published although a conflict was reported."""

    def change(self, loaded: LoadedMetadata) -> TableMetadata | None:
        """Write the manifests of an attempt, and return metadata with its snapshot.

        Return None if an earlier attempt has published the snapshot, or if nothing changes.
        """
        metadata = loaded.metadata
        self.own = metadata.snapshot(self._id)
        if self.own is not None:
            return None
        self.earlier = self._found(metadata)
        if self.earlier is not None:
            return None
        base = self._base(loaded)
        made = self._produce(base)
        if made is None:
            return None
        manifests = with_counts(loaded, made.manifests)
        added_rows = None
        if metadata.format_version > 2:
            assert base.snapshot.first_row_id is not None
            manifests, added_rows = with_first_row_ids(manifests, base.snapshot.first_row_id)
        version = metadata.format_version
        listed = self._files.manifest_list(version, manifests, base.snapshot)
        self._used = [listed, *manifests.column("manifest_path").to_pylist()]
        self.newest = replace(
            base.snapshot,
            manifest_list=listed,
            added_rows=added_rows,
            summary=self._summary(base, replace(made, manifests=manifests)),
        )
        changed = add_snapshot(metadata, self.newest, self._handle.branch)
        if made.alter is not None:
            changed = made.alter(changed)
        if made.statistics is None:
            return changed
        return replace(changed, statistics=(*changed.statistics, made.statistics))

    def delete_all(self) -> None:
        self._files.delete_all_but(())

    def delete_unused(self) -> None:
        """Delete the manifests and manifest lists that earlier attempts wrote, and the newest
        attempt does not use.
        """
        self._files.delete_all_but(self._used)

    def _found(self, metadata: TableMetadata) -> Snapshot | None:
        if self._commit is None:
            return None
        return find_commit(metadata, self._handle.branch, self._commit, self._handle.environment)

    def _base(self, loaded: LoadedMetadata) -> Base:
        metadata, branch = loaded.metadata, self._handle.branch
        head = metadata.references.get(branch)
        if head is None and branch != MAIN_BRANCH:
            raise NotFoundError(
                f"branch {branch!r} of {self._handle.uri} was deleted meanwhile; nothing was "
                "published. Create the branch again, or write to another one"
            )
        parent = None if head is None else metadata.snapshot(head.snapshot_id)
        manifests = MANIFEST_SCHEMA.empty_table()
        if parent is not None:
            manifests = read_manifest_list(loaded.places, parent)
        snapshot = Snapshot(
            self._id,
            next_timestamp(metadata, self._handle.environment.now_millis()),
            sequence_number=next_sequence_number(metadata),
            parent_id=None if parent is None else parent.snapshot_id,
            schema_id=metadata.current_schema_id,
            first_row_id=metadata.next_row_id if metadata.format_version > 2 else None,
        )
        return Base(loaded, parent, manifests, snapshot, self._files)

    def _summary(self, base: Base, made: FileChange) -> dict[str, str]:
        totals = _totals(base).plus(made.added).minus(made.removed)
        counts = {
            **change_summary(made.added, made.removed, made.partitions),
            **manifest_summary(base.manifests, made.manifests),
            **made.more,
            **total_summary(totals),
        }
        identity = {} if self._commit is None else identity_summary(self._commit)
        reserved = {"operation": made.operation, **counts, **identity}
        if taken := sorted(reserved.keys() & self._properties):
            raise InvalidRequestError(
                f"properties must not have {', '.join(map(repr, taken))}: the commit writes "
                "these itself into the summary of its snapshot. Use other names"
            )
        return {**self._properties, **reserved}


def with_first_row_ids(manifests: pa.Table, first: int) -> tuple[pa.Table, int]:
    """Assign a first row id, from ``first`` on, to each manifest of data files that has none.

    Return the manifests, and the number of rows that got ids.
    """
    found, following = [], first
    columns = ("content", "first_row_id", "added_rows_count", "existing_rows_count")
    for row in manifests.select(columns).to_pylist():
        if row["content"] == _DATA and row["first_row_id"] is None:
            found.append(following)
            following += row["added_rows_count"] + row["existing_rows_count"]
        else:
            found.append(row["first_row_id"])
    place = manifests.schema.get_field_index("first_row_id")
    numbered = manifests.set_column(place, "first_row_id", pa.array(found, pa.int64()))
    return numbered, following - first


def _totals(base: Base) -> FileCounts:
    """Return the totals of the parent snapshot from its summary, or else by counting its files."""
    if base.parent is None:
        return FileCounts()
    known = totals_in(base.parent.summary)
    if known is not None:
        return known
    found = read_entries(base.loaded.places, base.loaded.metadata, base.manifests)
    return FileCounts.of(live_entries(entries) for entries in found.values())
