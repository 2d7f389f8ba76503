# SPDX-License-Identifier: Apache-2.0
"""A rollback that keeps history: it publishes a new snapshot with the rows of an old snapshot."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
)
from lakeformat.paimon.commit.attempt_files import AttemptFiles, WrittenList
from lakeformat.paimon.commit.manifest_merge import merge_manifests, pick_deletions
from lakeformat.paimon.commit.publish import check_place, or_renamed, publish
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta, as_deletes
from lakeformat.paimon.deletion import Candidates, FileClass, Removal
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.deletion.places import FilePlaces
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, meet, read_manifests
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, write_hints
from lakeformat.paimon.metadata.tag import Tag, delete_tag
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.rollback.identity import properties_of
from lakeformat.paimon.tags.create import publish_tag
from lakeformat.paimon.tags.in_use import protection_name
from lakeformat.paimon.tags.source import Origin
from lakeformat.storage.turns import turn
from lakeformat.tables.commit_id import BATCH_IDENTIFIER, CommitId
from lakeformat.tables.create_once import PublishOutcome
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.reference_reports import RollbackReport
from lakeformat.types.count_text import counted

__all__ = ["Return", "plan_return", "publish_return", "report_return", "require_newest"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Return:
    """The files by which the newest snapshot and the target of a rollback differ."""

    head: Snapshot
    target: Origin
    changes: ManifestColumns
    """DELETE entries of files that only the newest snapshot has, then ADD entries of files to
    restore.
    """

    @property
    def added(self) -> ManifestColumns:
        """The ADD entries of the files to restore."""
        return self.changes.filter(~self.changes.is_delete)

    @property
    def is_empty(self) -> bool:
        """True if the newest snapshot has the files, deletion vectors and schema of the target."""
        target, head = self.target.snapshot, self.head
        return not len(self.changes) and (target.index_manifest, target.schema_id) == (
            head.index_manifest,
            head.schema_id,
        )


def plan_return(handle: TableHandle, head: Snapshot, target: Origin) -> Return:
    """Return the difference between the files of the newest snapshot and the files of the target.

    Raise CorruptTableError if a manifest of one of the two snapshots is missing or damaged, and
    InvalidRequestError if the postponed files (bucket -2) would not have the order of the target.
    """
    now, then = _live(handle, head), _live(handle, target.snapshot)
    both = ManifestColumns.concat([now, as_deletes(then)])
    left = meet(both).left
    goes, comes = left[left < len(now)], left[left >= len(now)] - len(now)
    if np.any(then.bucket.numbers[comes] == POSTPONE_BUCKET):
        kept = np.setdiff1d(np.arange(len(now)), goes)
        _require_order(handle, target, now.take(kept), then.take(comes), then)
    # A file that changes its level is both removed and added, so the removal must be first.
    changes = ManifestColumns.concat([as_deletes(now.take(goes)), then.take(comes)])
    return Return(head, target, changes)


def _require_order(
    handle: TableHandle,
    target: Origin,
    kept: ManifestColumns,
    comes: ManifestColumns,
    then: ManifestColumns,
) -> None:
    """Raise InvalidRequestError if a rollback would change the order of the postponed files.

    Postponed files are merged in the order of their manifest entries. A rollback adds the entries
    of restored files after all other entries, so a restored file might follow a newer file.
    """
    found, wanted = _postponed([kept, comes]), _postponed([then])
    if found != wanted:
        number = target.snapshot.id
        raise InvalidRequestError(
            f"{handle.uri} cannot be rolled back to snapshot {number} yet: the rollback restores "
            "postponed rows (bucket -2), which would count as newer than rows that were written "
            "later. "
            "Nothing was changed. Compact the table, then repeat the rollback"
        )


def _postponed(parts: Sequence[ManifestColumns]) -> dict[bytes, list[tuple[object, ...]]]:
    """Return the identities of the postponed files of each partition, in their order."""
    found: dict[bytes, list[tuple[object, ...]]] = {}
    for part in parts:
        for entry in part.filter(part.bucket.numbers == POSTPONE_BUCKET).entries():
            found.setdefault(entry.partition, []).append(entry.identity)
    return found


def publish_return(
    handle: TableHandle, plan: Return, commit: CommitId | None = None
) -> RollbackReport:
    """Publish a snapshot with the rows of the target, and return the report.

    The expiry of other engines deletes every file that a snapshot removed, even if a rollback has
    restored it. So a tag keeps the restored files until every earlier snapshot has expired. Raise
    CorruptTableError if a file of the target is missing, CommitConflictError if another commit was
    faster, and CommitOutcomeUnknownError if the storage gives no answer.
    """
    target, back = plan.target, [*_files_back(handle, plan)]
    name = protection_name(target.snapshot.id, handle.environment.new_id()) if back else None
    if name is not None:
        publish_tag(handle, Tag(name, target.snapshot), target)
    files = AttemptFiles(handle)

    def discard() -> None:
        files.delete_all()
        with suppress(LakeError):  # if the tag remains, `tags.expire` deletes it
            if name is not None:
                delete_tag(handle.storage, handle.layout, name)

    with kept_if_published(discard):
        _require_there(handle, target.snapshot, back)
        with turn(
            handle.storage,
            handle.layout.snapshot_directory,
            handle.environment.sleep_seconds,
        ):
            snapshot = _build(handle, plan, files, _RollbackIdentity.of(handle, commit, name))
            _publish(handle, plan, snapshot, is_repeatable=commit is not None)
    write_hints(handle.storage, handle.layout, snapshot.id)
    handle.observe_commit()
    _log.info(
        "rolled %s back to the rows of snapshot %d; the new snapshot is %d",
        *(handle.uri, target.snapshot.id, snapshot.id),
    )
    return report_return(handle, plan, snapshot.id, name)


def report_return(
    handle: TableHandle, plan: Return, snapshot_id: int, tag: str | None, *, dry_run: bool = False
) -> RollbackReport:
    """Return the report of a finished rollback, or of a dry run.

    ``tag`` is the name of the tag that keeps the restored files; None without such a tag.
    """
    number, added = plan.target.snapshot.id, len(plan.added)
    removed = len(plan.changes) - added
    reason = f"the table already has the rows of snapshot {number}"
    if not plan.is_empty:
        verb = "would have" if dry_run else "has"
        would_be = " would be" if dry_run else ""
        reason = (
            f"snapshot {snapshot_id} {verb} the rows of snapshot {number}: "
            f"{counted(added, 'file')}{would_be} restored, {removed} removed; all snapshots are "
            "kept"
        )
    return RollbackReport(
        table=handle.uri,
        target=number,
        snapshot_id=snapshot_id,
        as_latest=True,
        added_files=added,
        deleted_files=removed,
        protection_tag=tag,
        dry_run=dry_run,
        reason=reason,
    )


def _live(handle: TableHandle, snapshot: Snapshot) -> ManifestColumns:
    storage, layout = handle.storage, handle.layout
    columns = read_manifests(storage, layout, manifests_of(storage, layout, snapshot))
    return columns.take(live_rows(columns, f"snapshot {snapshot.id} of {handle.uri}"))


def _require_there(handle: TableHandle, target: Snapshot, files: Sequence[Removal]) -> None:
    """Raise CorruptTableError if one of ``files``, which the target needs, is missing."""
    there = in_parallel(handle, lambda each: each.storage.exists(each.path), files)
    missing = [each.uri for each, is_there in zip(files, there, strict=True) if not is_there]
    if missing:
        lost = f"its file {missing[0]} is missing"
        if len(missing) > 1:
            lost = f"{len(missing):,} of its files are missing, such as {missing[0]}"
        raise CorruptTableError(
            f"{handle.uri} cannot be rolled back to snapshot {target.id}, because {lost}. Nothing "
            "was changed. Choose another snapshot, or restore missing files from a backup"
        )


def _files_back(handle: TableHandle, plan: Return) -> Iterator[Removal]:
    """Yield the data files to restore, then the index files of the target.

    If the target and the newest snapshot have the same index manifest, yield no index files.
    """
    data = Candidates(handle)
    data.add(plan.added, FileClass.DATA, "is restored")
    yield from data.removals()
    target, places = plan.target.snapshot, FilePlaces(handle)
    if target.index_manifest is not None and target.index_manifest != plan.head.index_manifest:
        for entry in read_index_manifest(handle.storage, handle.layout, target.index_manifest):
            yield places.index_file(entry, "is restored")


@dataclass(frozen=True, slots=True)
class _RollbackIdentity:
    commit: CommitId | None
    user: str
    identifier: int
    tag: str | None

    @classmethod
    def of(cls, handle: TableHandle, commit: CommitId | None, tag: str | None) -> _RollbackIdentity:
        if commit is not None:
            return cls(commit, commit.user, commit.identifier, tag)
        prefix, unique = handle.options.commit_user_prefix, handle.environment.new_id()
        return cls(None, f"{prefix}_{unique}" if prefix else unique, BATCH_IDENTIFIER, tag)


def _build(
    handle: TableHandle, plan: Return, files: AttemptFiles, who: _RollbackIdentity
) -> Snapshot:
    """Return the new snapshot, with the target's schema, statistics, watermark and row count."""
    head, target = plan.head, plan.target.snapshot
    base = files.write_list(_base(handle, plan, files))
    delta: WrittenList = files.write_entries(plan.changes)
    row_ids = [each for each in (head.next_row_id, target.next_row_id) if each is not None]
    return Snapshot(
        id=head.id + 1,
        uuid=handle.environment.new_id(),
        schema_id=target.schema_id,
        base_manifest_list=base.name,
        base_manifest_list_size=base.size,
        delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size,
        index_manifest=target.index_manifest,
        commit_user=who.user,
        commit_identifier=who.identifier,
        commit_kind=CommitKind.OVERWRITE,
        time_millis=handle.environment.now_millis(),
        total_record_count=target.total_record_count,
        delta_record_count=target.total_record_count - head.total_record_count,
        watermark=target.watermark,
        statistics=target.statistics,
        properties=properties_of(target, who.commit, who.tag),
        next_row_id=max(row_ids, default=None),
    )


def _base(handle: TableHandle, plan: Return, files: AttemptFiles) -> list[ManifestMeta]:
    """Return the manifests of the newest snapshot, without DELETE entries of restored files.

    pypaimon drops a file that any manifest deletes, even if a later manifest adds it again.
    """
    manifests = manifests_of(handle.storage, handle.layout, plan.head)
    merge = pick_deletions(manifests) if len(plan.added) else None
    if merge is None:
        return manifests
    return merge_manifests(handle, manifests, merge, files.new_manifest)


def _publish(handle: TableHandle, plan: Return, snapshot: Snapshot, *, is_repeatable: bool) -> None:
    outcome = publish(handle, snapshot)
    if outcome is PublishOutcome.COMMITTED:
        try:
            changes = SnapshotDelta(table=plan.changes)
            outcome = check_place(handle, snapshot, changes, plan.head)
        except LakeError as error:
            raise _unknown(handle, plan, snapshot, is_repeatable=is_repeatable) from error
    if outcome is PublishOutcome.UNKNOWN:
        raise _unknown(handle, plan, snapshot, is_repeatable=is_repeatable)
    if outcome is PublishOutcome.LOST:
        raise _overtaken(handle, plan.head, plan.target)


def require_newest(handle: TableHandle, head: Snapshot, target: Origin) -> None:
    """Raise CommitConflictError if ``head`` is not the newest snapshot any more."""
    newest = latest_snapshot(handle.storage, handle.layout)
    if newest is None or newest.identity != head.identity:
        raise _overtaken(handle, head, target)


def _overtaken(handle: TableHandle, head: Snapshot, target: Origin) -> CommitConflictError:
    return CommitConflictError(
        f"the rollback of {handle.uri} to snapshot {target.snapshot.id} was planned when snapshot "
        f"{head.id} was the newest, but another program committed or rolled back meanwhile. "
        "Nothing was changed. Check the newest snapshot; repeat the rollback only if it should "
        "undo that snapshot, too"
    )


def _unknown(
    handle: TableHandle, plan: Return, snapshot: Snapshot, *, is_repeatable: bool
) -> CommitOutcomeUnknownError:
    advice = (
        "repeat it with the same CommitId: it is never done twice"
        if is_repeatable
        else f"repeat it only if the commit user of that snapshot is not {snapshot.commit_user!r}"
    )
    return CommitOutcomeUnknownError(
        f"the rollback of {handle.uri} to snapshot {plan.target.snapshot.id} got no answer from "
        f"the storage{or_renamed(handle)} and may have become snapshot {snapshot.id}: {advice}. "
        "No file was removed"
    )
