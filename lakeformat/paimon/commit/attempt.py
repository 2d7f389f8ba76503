"""The attempts of one commit: what is written once, and what each attempt writes anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow.compute as pc

from lakeformat.errors import CommitOutcomeUnknownError, CorruptTableError, LakeError
from lakeformat.paimon.commit.attempt_files import AttemptFiles, WrittenList
from lakeformat.paimon.commit.base_manifests import BaseManifests, PickManifests
from lakeformat.paimon.commit.bucket_counts import require_current_counts
from lakeformat.paimon.commit.changes import Changes, Provider
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.conflict_text import Committer
from lakeformat.paimon.commit.conflicts import without_duplicates
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.commit.new_files import NewFiles
from lakeformat.paimon.commit.publish import Outcome, check_place, publish
from lakeformat.paimon.commit.read_snapshot_check import ReadSnapshotCheck, Touches
from lakeformat.paimon.commit.row_tracking import number_rows
from lakeformat.paimon.commit.same_table import SameTable
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.index.combination import VectorFiles, combine
from lakeformat.paimon.metadata.compaction_mark import marked
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    read_snapshot_if_present,
)
from lakeformat.paimon.metadata.statistics import read_statistics
from lakeformat.paimon.partition_filter import PartitionFilter

__all__ = ["Attempts", "CommitIntent"]

NO_WATERMARK = -(2**63)
"""What Java writes where there is none."""


class Check(Protocol):
    """Whether changes fit a head."""

    def check(self, head: Snapshot | None, changes: Changes) -> None:
        """Raise unless they do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIntent:
    """What somebody wants to publish as one snapshot."""

    who: Committer
    provider: Provider
    commit: CommitId
    replay: Callable[[Snapshot], CommitReport]
    """Reports what an earlier try has published."""
    watermark: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: str | None = None
    statistics: str | None = None
    """The statistics file of an ANALYZE."""
    check: Check | None = None
    """None for what can never conflict."""
    discards_duplicates: bool = False
    """Leave out files that are in the table already, instead of refusing them."""
    pin: ReadSnapshotCheck | None = None
    replaced: PartitionFilter | None = None
    """What an overwrite replaces."""
    new_files: NewFiles | None = None
    """Where messages come from elsewhere: whether they come for the first time."""
    merge: PickManifests | None = None
    """Of a commit that is made to merge manifests: which; else the options of the table say."""

    @property
    def kind(self) -> CommitKind:
        return self.who.kind


@dataclass(slots=True)
class Attempts:
    """All attempts of one commit, each on a newer head than the last.

    The manifest of the changes does not depend on the head unless the changes do: it is written
    once. The base list and the snapshot belong to one attempt. Older manifests are merged in
    the first attempt only, and later ones use that as long as it fits.
    """

    handle: TableHandle
    intent: CommitIntent
    changes: Changes = field(default_factory=Changes)
    """Those of the last attempt."""
    began_on: int | None = None
    """The head of the first attempt, 0 for none."""
    _doubtful: dict[str, int] = field(default_factory=dict)
    """Snapshots of which the storage left open whether they are published: uuid to number."""
    _files: AttemptFiles = field(init=False)
    _base: BaseManifests = field(init=False)
    _same: SameTable = field(init=False)
    _head: Snapshot | None = None
    _delta: WrittenList | None = None
    _changelog: WrittenList | None = None
    _of_changes: list[str] = field(default_factory=list)
    _of_attempt: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._files = AttemptFiles(self.handle)
        self._base = BaseManifests(self.handle, self._files, self.intent.merge)
        self._same = SameTable(self.handle)

    def snapshot_on(self, head: Snapshot | None) -> Snapshot:
        """Check the changes against ``head``, write what a snapshot needs, and build it."""
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
        """Whether some attempt may have been published: then no file may be removed."""
        return bool(self._doubtful)

    def publish(self, snapshot: Snapshot) -> Outcome:
        """Publish what ``snapshot_on`` built; until the storage answers, it is in doubt."""
        assert snapshot.uuid is not None
        self._doubtful[snapshot.uuid] = snapshot.id
        try:
            outcome = publish(self.handle, snapshot)
        except LakeError:  # certainly not published: what is open comes back as an outcome
            del self._doubtful[snapshot.uuid]
            raise
        if outcome is Outcome.COMMITTED:
            outcome = check_place(self.handle, snapshot, self.changes, self._head)
            if outcome is Outcome.UNKNOWN:
                raise _place_unknown(self.handle, snapshot, self.intent.commit)
        if outcome is Outcome.LOST:
            del self._doubtful[snapshot.uuid]
            self._files.delete(self._of_attempt)
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
        """Remove every file of every attempt, unless one of them may have been published.

        Whoever tries again after that begins anew.
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

    def _checked(self, head: Snapshot | None, changes: Changes) -> Changes:
        """The changes, once nothing speaks against them."""
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

    def _touches(self, changes: Changes) -> Touches:
        """Partitions that are replaced, also those that are empty now; else those that change."""
        if self.intent.replaced is not None:
            return self.intent.replaced.mask
        partitions = changes.partitions()
        return lambda rows: pc.is_in(rows, partitions).to_numpy(zero_copy_only=False)

    def _write_changes(self, changes: Changes) -> None:
        """Manifests of the changes, unless they are those of the last attempt."""
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

    def _index_manifest(self, head: Snapshot | None, changes: Changes) -> str | None:
        """The name as it was where nothing changes: readers take an equal name for that."""
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
        """The statistics of the head, unless they were made of other columns."""
        if head is None or head.statistics is None or head.schema_id != schema_id:
            return None
        storage, layout = self.handle.storage, self.handle.layout
        try:
            known = read_statistics(storage, layout, head.statistics)
        except CorruptTableError:
            return None  # nobody can read them: they end here
        return head.statistics if known.schema_id == schema_id else None

    def _schema_id(self, head: Snapshot | None) -> int:
        """The schema in force now; where it is newer than the writer's, buckets count by it."""
        newest = self._same.schema_id(head)
        if newest != self.handle.schema.id and self.intent.kind is CommitKind.APPEND:
            schema = read_schema(self.handle.storage, self.handle.layout, newest)
            current = replace(self.intent.who, handle=replace(self.handle, schema=schema))
            require_current_counts(current, head, self.changes)
        return newest


def _place_unknown(
    handle: TableHandle, snapshot: Snapshot, commit: CommitId
) -> CommitOutcomeUnknownError:
    """Finding the snapshot, as another try would, does not say that the table consists of it."""
    return CommitOutcomeUnknownError(
        f"snapshot {snapshot.id} of {handle.uri}, commit {commit}, was published when the one "
        "before it had expired, and whether the next one was built on it is not to be seen any "
        "more. Look whether its changes are in the table, and make them under another identity "
        "if they are not: this one is found there. Keep more snapshots than commits take time for"
    )


def _later(first: int | None, second: int | None) -> int | None:
    present = [value for value in (first, second) if value not in (None, NO_WATERMARK)]
    return max(present, default=None)
