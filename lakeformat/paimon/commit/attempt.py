# SPDX-License-Identifier: Apache-2.0
"""The attempts of one commit, each on a newer snapshot, and the metadata files that they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow.compute as pc

from lakeformat.errors import CommitOutcomeUnknownError, CorruptTableError, LakeError
from lakeformat.paimon.commit.attempt_files import (
    AttemptFiles,
    BaseManifests,
    PickManifests,
    WrittenList,
)
from lakeformat.paimon.commit.bucket_counts import require_current_counts
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.conflict_text import Committer
from lakeformat.paimon.commit.conflicts import without_duplicates
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.publish import branch_changed, check_place, is_moved_branch, publish
from lakeformat.paimon.commit.read_snapshot_check import ReadSnapshotCheck, Touches
from lakeformat.paimon.commit.row_tracking import number_rows
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.commit.snapshot_delta import Provider, SnapshotDelta
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.index.combination import VectorFiles, combine
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot, marked
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    read_snapshot_if_present,
)
from lakeformat.paimon.metadata.statistics import read_statistics
from lakeformat.paimon.partition_filter import PartitionFilter
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.create_once import PublishOutcome

__all__ = ["Attempts", "CommitIntent"]

NO_WATERMARK = -(2**63)
"""Java's value for a missing watermark."""


class Check(Protocol):
    """Checks that the changes of a commit fit ``head``, the snapshot on which it builds."""

    def check(self, head: Snapshot | None, changes: SnapshotDelta) -> None:
        """Raise CommitConflictError if the changes do not fit ``head``; ``head=None`` stands for an
        empty table.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIntent:
    """A change to publish as one snapshot, with the checks before each attempt."""

    who: Committer
    provider: Provider
    commit: CommitId
    replay: Callable[[Snapshot], CommitReport]
    """Returns the report for a snapshot that an earlier attempt published."""
    watermark: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: str | None = None
    statistics: str | None = None
    """The name of the statistics file that ANALYZE has written; None for any other commit."""
    check: Check | None = None
    """The check of conflicts; None for a change that can never conflict."""
    discards_duplicates: bool = False
    """True: leave out files that are already in the table."""
    pin: ReadSnapshotCheck | None = None
    replaced: PartitionFilter | None = None
    """The partitions that an overwrite replaces; None for any other commit."""
    new_files: NewFileCheck | None = None
    """Refuses files of other processes that were committed before.

    None if this process wrote the files, or if duplicates are left out.
    """
    merge: PickManifests | None = None
    """Chooses the manifests to merge; None to follow the table options."""

    @property
    def kind(self) -> CommitKind:
        return self.who.kind


@dataclass(slots=True)
class Attempts:
    """All attempts of one commit, each built on the newest snapshot at that time.

    The manifest of the changes is written once, unless the changes depend on the snapshot. The
    base list and the snapshot are written for each attempt.
    """

    handle: TableHandle
    intent: CommitIntent
    changes: SnapshotDelta = field(default_factory=SnapshotDelta)
    """The changes of the last attempt."""
    began_on: int | None = None
    """The id of the snapshot that the first attempt built on: 0 if the table had none.

    None before the first attempt.
    """
    _doubtful: dict[str, int] = field(default_factory=dict)
    """The ids, by uuid, of the snapshots whose publication got no answer from the storage."""
    _files: AttemptFiles = field(init=False)
    _base: BaseManifests = field(init=False)
    _head: Snapshot | None = None
    _delta: WrittenList | None = None
    _changelog: WrittenList | None = None
    _of_changes: list[str] = field(default_factory=list)
    _of_attempt: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._files = AttemptFiles(self.handle)
        self._base = BaseManifests(self.handle, self._files, self.intent.merge)

    def snapshot_on(self, head: Snapshot | None) -> Snapshot:
        """Check the changes against ``head``, write the metadata files, and return the next
        snapshot.

        Raise CommitConflictError if a check finds a conflict. After any error the metadata files of
        all attempts are deleted, unless an attempt may have been published.
        """
        if self.began_on is None:
            self.began_on = head.id if head else 0
        self._head = head
        try:
            return self._build_on(head)
        except BaseException:
            self.discard()
            raise

    @property
    def in_doubt(self) -> bool:
        """True if an attempt may have been published; then its files must be kept."""
        return bool(self._doubtful)

    def publish(self, snapshot: Snapshot) -> PublishOutcome:
        """Publish the snapshot of the last attempt, and return the outcome.

        If the outcome is LOST, the metadata files that only this attempt needs are deleted. Raise
        CommitOutcomeUnknownError if the snapshot exists but may not be part of the history.
        """
        assert snapshot.uuid is not None
        self._doubtful[snapshot.uuid] = snapshot.id
        try:
            outcome = publish(self.handle, snapshot)
        # The commit is certainly not published: an unknown result is an outcome, not an error.
        except LakeError:
            del self._doubtful[snapshot.uuid]
            raise
        if outcome is PublishOutcome.COMMITTED:
            outcome = check_place(self.handle, snapshot, self.changes, self._head)
            if outcome is PublishOutcome.UNKNOWN:
                raise _place_unknown(self.handle, snapshot, self.intent.commit)
        if outcome is PublishOutcome.LOST:
            del self._doubtful[snapshot.uuid]
            self._files.delete(self._of_attempt)
        return outcome

    def resolve_doubt(self) -> Snapshot | None:
        """Return the snapshot whose publication got no answer, if it was published; else None.

        An attempt counts as lost if another writer's snapshot has its number.
        """
        storage, layout = self.handle.storage, self.handle.layout
        for uuid, number in list(self._doubtful.items()):
            snapshot = read_snapshot_if_present(storage, layout, number)
            if snapshot is not None and snapshot.uuid == uuid:
                return snapshot
            if snapshot is not None:
                del self._doubtful[uuid]
        return None

    def discard(self) -> None:
        """Delete the metadata files of all attempts, unless an attempt may have been published.

        A later attempt then writes all of them again.
        """
        if self.in_doubt:
            return
        self._files.delete_all()
        self._delta = self._changelog = None
        self._of_changes, self._of_attempt = [], []
        self._base = BaseManifests(self.handle, self._files, self.intent.merge)

    def _build_on(self, head: Snapshot | None) -> Snapshot:
        number = head.id + 1 if head else FIRST_SNAPSHOT_ID
        changes = self._checked(head, self.intent.provider(head))
        next_row_id = (head.next_row_id if head else None) or 0
        options = self.handle.options
        if options.row_tracking_enabled:
            by_partition = options.row_tracking_partition_group
            changes, next_row_id = number_rows(
                changes, number, next_row_id, by_partition=by_partition
            )
        self._write_changes(changes)
        mark = self._files.mark
        index_manifest = self._index_manifest(head, changes)
        base = self._base.written_on(head, keep_merged=self.in_doubt)
        merged = self._base.merged
        self._of_attempt = [name for name in self._files.since(mark) if name not in merged]
        return self._snapshot(head, number, base, index_manifest, next_row_id)

    def _checked(self, head: Snapshot | None, changes: SnapshotDelta) -> SnapshotDelta:
        """Run the checks of the intent; return the changes, without duplicates if the intent
        discards them.
        """
        intent = self.intent
        if intent.new_files is not None:
            intent.new_files.check(head)
        if intent.pin is not None:
            intent.pin.check(head, self._touches(changes))
        if intent.discards_duplicates and head is not None:
            changes = without_duplicates(self.handle, head, changes)
        if intent.check is not None:
            intent.check.check(head, changes)
        return changes

    def _touches(self, changes: SnapshotDelta) -> Touches:
        """Return a function that takes partitions, and returns a mask of those that the commit
        changes.

        An overwrite changes all partitions that it replaces, even empty ones.
        """
        if self.intent.replaced is not None:
            return self.intent.replaced.mask
        partitions = changes.partitions()
        return lambda rows: pc.is_in(rows, partitions).to_numpy(zero_copy_only=False)

    def _write_changes(self, changes: SnapshotDelta) -> None:
        """Write the manifests of the changes, unless the last attempt wrote manifests of the same
        changes.
        """
        if self._delta is not None and changes is self.changes:
            return
        if not self.in_doubt:
            self._files.delete(self._of_changes)
        mark = self._files.mark
        self.changes = changes
        self._delta = self._files.write_entries(changes.table)
        has_changelog = len(changes.changelog) > 0
        self._changelog = self._files.write_entries(changes.changelog) if has_changelog else None
        self._of_changes = self._files.since(mark)

    def _index_manifest(self, head: Snapshot | None, changes: SnapshotDelta) -> str | None:
        """Return the name of the next index manifest; None if the table has no index file left.

        If no index file changes, keep the index manifest of ``head``.
        """
        name = head.index_manifest if head else None
        if not changes.has_index_changes:
            return name
        storage, layout = self.handle.storage, self.handle.layout
        kinds = VectorFiles.ANY_NUMBER if is_unaware(self.handle) else VectorFiles.ONE_PER_BUCKET
        state = combine(
            read_index_manifest(storage, layout, name) if name else [],
            removed=changes.index_removed,
            added=changes.index_added,
            vector_files=kinds,
        )
        return self._files.write_index_manifest(state) if state else None

    def _snapshot(
        self,
        head: Snapshot | None,
        number: int,
        base: WrittenList,
        index_manifest: str | None,
        next_row_id: int,
    ) -> Snapshot:
        intent, changes, delta, changelog = self.intent, self.changes, self._delta, self._changelog
        assert delta is not None
        schema_id = self._schema_id(head)
        before = head.total_record_count or 0 if head else 0
        return Snapshot(
            id=number,
            uuid=self.handle.environment.new_id(),
            schema_id=schema_id,
            base_manifest_list=base.name,
            base_manifest_list_size=base.size,
            delta_manifest_list=delta.name,
            delta_manifest_list_size=delta.size,
            changelog_manifest_list=changelog.name if changelog else None,
            changelog_manifest_list_size=changelog.size if changelog else None,
            changelog_record_count=(
                int(changes.changelog.row_count.numbers.sum()) if changelog else None
            ),
            index_manifest=index_manifest,
            commit_user=intent.commit.user,
            commit_identifier=intent.commit.identifier,
            commit_kind=intent.kind,
            time_millis=self.handle.environment.now_millis(),
            total_record_count=before + changes.added_rows,
            delta_record_count=changes.added_rows,
            watermark=_later(intent.watermark, head.watermark if head else None),
            statistics=intent.statistics or self._inherited_statistics(head, schema_id),
            properties=marked(intent.kind, intent.properties) or None,
            next_row_id=next_row_id,
            operation=intent.operation,
        )

    def _inherited_statistics(self, head: Snapshot | None, schema_id: int) -> str | None:
        """Return the name of the statistics file of ``head`` for the next snapshot.

        Return None if it is missing, unreadable, or of another schema.
        """
        if head is None or head.statistics is None or head.schema_id != schema_id:
            return None
        storage, layout = self.handle.storage, self.handle.layout
        try:
            known = read_statistics(storage, layout, head.statistics)
        except CorruptTableError:
            return None  # unreadable statistics are not inherited
        return head.statistics if known.schema_id == schema_id else None

    def _schema_id(self, head: Snapshot | None) -> int:
        """Return the id of the newest schema.

        Raise NotFoundError if the table was dropped, renamed or created again before this attempt.
        If an append was written with an older schema, and the newest schema has a fixed bucket
        count, also check the new files. Raise CommitConflictError for a new file with another
        count, unless the partition already has files, and they have the same count as the new file.
        """
        newest = require_same_table(self.handle)
        if newest != self.handle.schema.id and self.intent.kind is CommitKind.APPEND:
            schema = read_schema(self.handle.storage, self.handle.layout, newest)
            current = replace(self.intent.who, handle=replace(self.handle, schema=schema))
            require_current_counts(current, head, self.changes)
        return newest


def _place_unknown(
    handle: TableHandle, snapshot: Snapshot, commit: CommitId
) -> CommitOutcomeUnknownError:
    if is_moved_branch(handle):
        return branch_changed(handle, commit)
    return CommitOutcomeUnknownError(
        f"{commit} was published as snapshot {snapshot.id} of {handle.uri}, but snapshot "
        f"{snapshot.id - 1} had expired by then, so later snapshots may lack these changes. Check "
        "if the table has the changes. If it lacks them, commit them with another CommitId: a "
        f"retry with this one finds snapshot {snapshot.id} and does nothing. Keep snapshots longer "
        "than commits take ('snapshot.time-retained')"
    )


def _later(first: int | None, second: int | None) -> int | None:
    present = [value for value in (first, second) if value not in (None, NO_WATERMARK)]
    return max(present, default=None)
