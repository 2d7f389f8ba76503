# SPDX-License-Identifier: Apache-2.0
"""Commits prepared files, as an append, an overwrite or a compaction, and commits statistics.

A call publishes at most two snapshots: first the append or overwrite, then the compaction.
Both have the same commit user and identifier, and differ by their commit kind.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    UnsupportedError,
)
from lakeformat.paimon.commit.attempt import CommitIntent
from lakeformat.paimon.commit.attempt_files import PickManifests
from lakeformat.paimon.commit.bucket_counts import BucketCounts
from lakeformat.paimon.commit.commit_report import CommitReport, nothing_to_commit
from lakeformat.paimon.commit.conflict_text import Committer
from lakeformat.paimon.commit.conflicts import ConflictCheck, check_within
from lakeformat.paimon.commit.earlier_commit_report import EarlierCommitReport
from lakeformat.paimon.commit.earlier_result import (
    DATA_KINDS,
    find_commit,
    joined,
)
from lakeformat.paimon.commit.identity import EarlierCommits, takes_rows_out
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.overwrite import (
    Dynamic,
    Overwrite,
    Replacement,
    require_within,
    upgraded,
)
from lakeformat.paimon.commit.read_snapshot_check import ReadSnapshotCheck
from lakeformat.paimon.commit.redo import Redo
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta, append_changes, compact_changes
from lakeformat.paimon.commit.transaction import publish_once
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.layout import statistics_name
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.metadata.statistics import TableStatistics, write_statistics
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.partition_filter import PartitionFilter, these_partitions
from lakeformat.tables.commit_id import BATCH_IDENTIFIER, CommitId, require_commit_id
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence
from lakeformat.types.type_rules import is_text, is_whole_number

__all__ = ["CommitOptions", "commit_messages", "commit_statistics"]

_log = logging.getLogger(__name__)
_LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """Options of any commit."""

    commit: CommitId | None = None
    watermark: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: str | None = None
    read_snapshot: int | None = None
    """The number of the snapshot from which the change was computed; 0 for the empty table.

    A later change of the same partitions is a conflict. None: no snapshot was read.
    """
    read_identity: str | None = None
    """The identity of ``read_snapshot``, which detects a reused number; None if unknown."""
    is_recorded: bool = False
    """Publish a snapshot even if nothing changes, so that a retry of the commit finds it."""
    kept_files: Set[str] = frozenset()
    """The names of files that an overwrite does not delete."""
    merge: PickManifests | None = None
    """Chooses the manifests to merge; None to follow the table options."""

    def __post_init__(self) -> None:
        _check_arguments(self.watermark, self.properties)
        if self.commit is not None:
            require_commit_id(self.commit)
        if self.read_snapshot is not None and not is_whole_number(self.read_snapshot):
            raise InvalidRequestError(
                f"'read_snapshot' must be a snapshot number, got {self.read_snapshot!r}"
            )


def _check_arguments(watermark: int | None, properties: Mapping[str, str] | None) -> None:
    """Raise InvalidRequestError for values that a snapshot file cannot store."""
    if watermark is not None and (not is_whole_number(watermark) or watermark not in _LONG):
        raise InvalidRequestError(f"watermark must be a 64-bit integer, got {watermark!r}")
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidRequestError(f"properties must map str to str, got {properties!r}")
    for key, value in (properties or {}).items():
        if not is_text(key) or not is_text(value):
            raise InvalidRequestError(
                f"properties must map str to str, got {key!r}: {value!r}; pass str(value)"
            )


def commit_messages(
    handle: TableHandle,
    messages: Sequence[CommitMessage],
    options: CommitOptions,
    *,
    overwrite: Replacement = None,
    earlier: EarlierCommits | None = None,
    from_elsewhere: bool = False,
) -> CommitReport:
    """Publish the changes of messages; a retry with the same ``CommitId`` publishes nothing twice.

    ``overwrite`` chooses the partitions to replace; ``overwrite=None`` adds the files. If
    ``find_replay`` was called before, pass its argument ``earlier`` here, too. Set
    ``from_elsewhere`` for messages of other processes. Raise InvalidRequestError for messages that
    do not fit the table or name a file twice, UnsupportedError if the table forbids the change,
    CommitConflictError after a conflict, and CommitOutcomeUnknownError if an error occurs after
    some changes were or may have been published.
    """
    data, compaction = append_changes(handle, messages), compact_changes(handle, messages)
    for operation in _operations(data, compaction):
        require_allowed(handle, operation)
    for changes in (data, compaction):
        if len(changes.table) > 1:
            check_within(handle, changes)
    _refuse_untracked(handle, data, compaction, is_overwrite=overwrite is not None)
    planned_on = _planned_on(handle, messages, options.read_snapshot)
    commits = _Commits(handle, options, messages, earlier, planned_on, from_elsewhere)
    if compaction.is_empty:
        return commits.data(data, overwrite, can_upgrade=True)
    if data.is_empty and isinstance(overwrite, Dynamic | None):
        return commits.compaction(compaction)
    done = commits.data(data, overwrite, can_upgrade=False)
    return commits.compaction_after(done, compaction, messages)


def _operations(data: SnapshotDelta, compaction: SnapshotDelta) -> list[Operation]:
    """Return the operations that the table must allow: WRITE for changed rows, COMPACT for a
    compaction.

    Return COMMIT alone if the commit has neither.
    """
    found = [] if data.is_empty else [Operation.WRITE]
    return [*found, *([] if compaction.is_empty else [Operation.COMPACT])] or [Operation.COMMIT]


def commit_statistics(
    handle: TableHandle, statistics: TableStatistics, options: CommitOptions
) -> CommitReport:
    """Write the statistics of an ANALYZE, and publish a snapshot that names their file."""
    require_allowed(handle, Operation.COMMIT)
    name = statistics_name(handle.environment.new_id(), 0)

    def discard() -> None:
        handle.storage.delete(handle.layout.statistics(name))

    with kept_if_published(discard):
        write_statistics(handle.storage, handle.layout, name, statistics)
        report = _Commits(handle, options).statistics(name)
    if report.replayed:
        discard()
    return report


class _Commits:
    """Publishes the snapshots of a call, at most two, which have the same ``CommitId``."""

    def __init__(
        self,
        handle: TableHandle,
        options: CommitOptions,
        messages: Sequence[CommitMessage] = (),
        earlier: EarlierCommits | None = None,
        planned_on: int | None = None,
        from_elsewhere: bool = False,
    ) -> None:
        self._handle = handle
        self._options = options
        self._first_look = earlier
        self._messages = messages
        self._foreign = messages if from_elsewhere else ()
        """Messages of other writers, which may have been committed before."""
        self._commit = options.commit or _new_identity(handle)
        self._planned_on = planned_on

    def data(
        self, new: SnapshotDelta, overwrite: Replacement, *, can_upgrade: bool
    ) -> CommitReport:
        """Publish written files, as an append or an overwrite.

        If ``can_upgrade``, an overwrite may put files on the highest level (``overwrite-upgrade``).
        """
        handle = self._handle
        if isinstance(overwrite, Dynamic):
            if new.is_empty:
                return self._nothing()
            overwrite = these_partitions(handle.schema, new.table.partition.to_arrow())
        if overwrite is not None:
            return self._overwrite(new, overwrite, can_upgrade=can_upgrade)
        if takes_rows_out(handle, self._commit):
            intent = self._intent(CommitKind.OVERWRITE, new)
            return self._publish(replace(intent, provider=Redo(handle, self._commit, new)))
        records = new.is_empty and self._options.is_recorded
        if new.is_empty and not records and not _wants_empty(handle):
            return self._nothing()
        # A retry expects the kind that a change of rows would have.
        if new.changes_rows or (records and not handle.schema.primary_keys):
            return self._publish(self._intent(CommitKind.OVERWRITE, new))
        return self._append(new)

    def compaction(self, changes: SnapshotDelta) -> CommitReport:
        return self._publish(self._intent(CommitKind.COMPACT, changes))

    def compaction_after(
        self, done: CommitReport, changes: SnapshotDelta, messages: Sequence[CommitMessage]
    ) -> CommitReport:
        """Publish the compaction of a call after its rows, and return a report on both.

        After a conflict, delete the compaction's files and report the reason; the rows are
        published. Any other LakeError becomes CommitOutcomeUnknownError.
        """
        try:
            compacted = self.compaction(changes)
        except CommitConflictError as refused:
            delete_written(self._handle, [each.compaction_alone() for each in messages])
            reason = f"{done.reason}; the compaction was not published"
            return replace(done, compact_refused=str(refused), reason=f"{reason}: {refused}")
        except LakeError as error:
            raise CommitOutcomeUnknownError(
                f"the rows were published as snapshot {done.snapshot_id} of {self._handle.uri}, "
                f"but the compaction failed: {sentence(error)} Repeat the call with "
                f"{self._commit}: the rows will not be published twice"
            ) from error
        return joined(done, compacted)

    def statistics(self, name: str) -> CommitReport:
        intent = self._intent(CommitKind.ANALYZE, SnapshotDelta())
        return self._publish(replace(intent, statistics=name))

    def _overwrite(
        self, new: SnapshotDelta, partitions: PartitionFilter, *, can_upgrade: bool
    ) -> CommitReport:
        handle = self._handle
        require_within(handle, partitions, new)
        if new.table.is_delete.any():
            raise InvalidRequestError(
                f"a message deletes files, but an overwrite of {handle.uri} finds the files to "
                "delete by itself: pass messages without deleted files"
            )
        if len(new.changelog):
            _log.warning(
                "overwrite of %s: skipped %s, because an overwrite has no changelog",
                handle.uri,
                counted(len(new.changelog), "changelog file"),
            )
        new = upgraded(handle, new) if can_upgrade else new
        intent = replace(
            self._intent(CommitKind.OVERWRITE, new),
            provider=Overwrite(handle, partitions, new, self._options.kept_files),
            replaced=partitions,
            check=ConflictCheck(self._who(CommitKind.OVERWRITE), may_change_buckets=True),
        )
        return self._publish(intent)

    def _append(self, new: SnapshotDelta) -> CommitReport:
        """Publish added rows; only buckets and ``read_snapshot`` are checked for conflicts."""
        handle = self._handle
        intent = self._intent(CommitKind.APPEND, new)
        if self._commit.replaces is not None:
            intent = replace(intent, provider=Redo(handle, self._commit, new))
        has_index = any(message.assigned_by is not None for message in self._messages)
        if handle.options.commit_discard_duplicate_files and not has_index:
            intent = replace(intent, discards_duplicates=True, new_files=None)
        elif _has_buckets(handle, new):
            intent = replace(intent, check=BucketCounts(intent.who, self._messages))
        else:
            intent = replace(intent, check=None)
        return self._publish(intent)

    def _publish(self, intent: CommitIntent) -> CommitReport:
        kinds = DATA_KINDS if intent.kind in DATA_KINDS else (intent.kind,)
        return publish_once(self._handle, intent, self._earlier(kinds))

    def _intent(self, kind: CommitKind, changes: SnapshotDelta) -> CommitIntent:
        options, who = self._options, self._who(kind)
        is_analyze = kind is CommitKind.ANALYZE
        return CommitIntent(
            who=who,
            replay=EarlierCommitReport(self._handle, changes, from_elsewhere=bool(self._foreign)),
            provider=lambda head: changes,
            commit=self._commit,
            watermark=options.watermark,
            properties=options.properties,
            operation=options.operation,
            check=None if is_analyze else ConflictCheck(who),
            pin=self._pin(kind),
            new_files=self._new_files(kind) if self._foreign else None,
            merge=options.merge,
        )

    def _who(self, kind: CommitKind) -> Committer:
        return Committer(self._handle, kind, self._commit.user, self._planned_on)

    def _new_files(self, kind: CommitKind) -> NewFileCheck:
        is_compaction = kind is CommitKind.COMPACT
        return NewFileCheck(
            self._handle,
            [
                message.compaction_alone() if is_compaction else message.append_alone()
                for message in self._foreign
            ],
        )

    def _pin(self, kind: CommitKind) -> ReadSnapshotCheck | None:
        read, safe = self._options.read_snapshot, self._handle.options.commit_last_safe_snapshot
        snapshot = safe if read is None else read
        if snapshot is None or kind is CommitKind.ANALYZE:
            return None
        return ReadSnapshotCheck(
            self._who(kind),
            self._commit,
            snapshot,
            identity=self._options.read_identity,
            was_read=read is not None,
        )

    def _earlier(self, kinds: Collection[CommitKind]) -> EarlierCommits:
        looked, self._first_look = self._first_look, None
        if looked is not None:
            return looked
        is_new = self._options.commit is None
        return EarlierCommits(self._handle, self._commit, kinds, is_new=is_new)

    def _nothing(self) -> CommitReport:
        commit = self._options.commit
        found = None if commit is None else find_commit(self._handle, commit)
        return found or nothing_to_commit(self._handle, self._ignored())

    def _ignored(self) -> list[str]:
        """Return a text for each given argument that is lost because no snapshot is published."""
        options = self._options
        watermark = [] if options.watermark is None else [f"the watermark {options.watermark}"]
        return watermark + (["the properties"] if options.properties else [])


def _planned_on(
    handle: TableHandle, messages: Sequence[CommitMessage], read: int | None
) -> int | None:
    """Return the id of the snapshot on which the commit was prepared, or None if unknown.

    It is ``read`` if given, otherwise the newest snapshot when the first of the writers started.
    """
    if read is not None:
        return read
    branch = handle.layout.branch
    bases = [message.base_snapshot for message in messages if message.branch == branch]
    return min((base for base in bases if base is not None), default=None)


def _refuse_untracked(
    handle: TableHandle, data: SnapshotDelta, compaction: SnapshotDelta, *, is_overwrite: bool
) -> None:
    """Raise UnsupportedError if files of a row-tracking table are rewritten: row ids would be
    lost.
    """
    if not handle.options.row_tracking_enabled or is_overwrite:
        return
    if not compaction.is_empty or data.table.is_delete.any():
        raise UnsupportedError(
            f"the commit rewrites files or deletes rows of {handle.uri}, which tracks row ids "
            "('row-tracking.enabled'), and this version would lose these ids. Nothing was "
            "published. Commit only new rows, replace whole partitions with overwrite=, or make "
            "this change with another engine"
        )


def _new_identity(handle: TableHandle) -> CommitId:
    prefix, unique = handle.options.commit_user_prefix, handle.environment.new_id()
    return CommitId(f"{prefix}_{unique}" if prefix else unique, BATCH_IDENTIFIER)


def _wants_empty(handle: TableHandle) -> bool:
    options = handle.options
    return options.commit_force_create_snapshot or not options.snapshot_ignore_empty_commit


def _has_buckets(handle: TableHandle, new: SnapshotDelta) -> bool:
    """Return True if the new files belong to numbered buckets, whose count may have changed
    since the files were written.
    """
    return bool(handle.schema.primary_keys) or bool((new.table.total_buckets.numbers > 0).any())
