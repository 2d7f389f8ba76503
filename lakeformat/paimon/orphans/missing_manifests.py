# SPDX-License-Identifier: Apache-2.0
"""Removes missing manifests from the newest snapshot of a table.

The rows of data files that only these manifests name are lost, even if the files still exist.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidRequestError,
    LakeError,
)
from lakeformat.paimon.commit.attempt_files import AttemptFiles
from lakeformat.paimon.commit.publish import check_place, or_renamed, publish
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.expiry_race import again_if_overtaken, is_overtaken
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.manifest import ManifestColumns, cancel_pairs, read_manifests
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, write_hints
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.orphans.lost_changes import lost_changes
from lakeformat.tables.commit_id import BATCH_IDENTIFIER
from lakeformat.tables.create_once import PublishOutcome
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["MissingManifestsReport", "remove_missing_manifests"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingManifestsReport(Report):
    """The result of a search for missing manifests."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The number of the checked snapshot."""
    published: int | None
    """The number of the published snapshot without the missing manifests; None if none was
    published.
    """
    checked_manifests: int
    missing_manifests: tuple[str, ...]
    missing_files: int
    """The number of data files that the missing manifests added; the rows of those that were still
    live are lost.
    """
    rows_before: int
    rows_after: int
    """The number of rows in the remaining files, including rows that other files replace or
    delete.
    """
    objection: str | None
    """In a dry run, the message of the error that the removal would raise, if any."""
    reason: str
    """The outcome in one sentence, for the log."""


def remove_missing_manifests(handle: TableHandle, *, dry_run: bool) -> MissingManifestsReport:
    """Find missing manifests and, unless it is a dry run, publish a snapshot without them.

    In a table with a primary key, earlier rows that the lost files deleted or replaced appear
    again. Raise InvalidRequestError if a missing manifest recorded the deletion of files, because
    their names are unknown. Raise it also if an append table has deletion vectors. A dry run
    reports these errors instead.
    """
    require_allowed(handle, Operation.COMMIT)
    report, head, live = again_if_overtaken(handle, lambda: _look(handle, dry_run=dry_run))
    if dry_run or head is None or live is None:
        return report
    if report.objection is not None:
        raise InvalidRequestError(report.objection)
    number = _publish(handle, head, live)
    removed = counted(len(report.missing_manifests), "missing manifest")
    reason = f"removed {removed}: published as snapshot {number}{lost_changes(handle)}"
    lost = counted(report.missing_files, "data file")
    _log.warning("%s: the rows of at most %s are lost; %s", handle.uri, lost, reason)
    return replace(report, published=number, reason=reason)


def _look(
    handle: TableHandle, *, dry_run: bool
) -> tuple[MissingManifestsReport, Snapshot | None, ManifestColumns | None]:
    """Return the report, the newest snapshot, and the files that remain without the missing
    manifests.

    The snapshot is None for a table without commits; the files are None if no manifest is missing.
    Raise CorruptTableError if a manifest is missing and a newer snapshot was published meanwhile.
    """
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        return _report(handle, None, [], [], None, dry_run=dry_run), None, None
    manifests = manifests_of(handle.storage, handle.layout, head)
    there = in_parallel(handle, lambda each: _is_there(handle, each), manifests)
    left = [each for each, is_there in zip(manifests, there, strict=True) if is_there]
    missing = [each for each, is_there in zip(manifests, there, strict=True) if not is_there]
    if not missing:
        return _report(handle, head, manifests, [], None, dry_run=dry_run), head, None
    live = _live(handle, head, left)
    objection = _objection(handle, head, missing)
    report = _report(handle, head, manifests, missing, live, dry_run=dry_run, objection=objection)
    if is_overtaken(handle, head.id):
        raise CorruptTableError(
            f"{counted(len(missing), 'manifest')} of snapshot {head.id} of {handle.uri} "
            "disappeared while a newer snapshot was published: try again"
        )
    return report, head, live


def _is_there(handle: TableHandle, manifest: ManifestMeta) -> bool:
    return handle.storage.exists(handle.layout.manifest(manifest.file_name))


def _live(handle: TableHandle, head: Snapshot, manifests: list[ManifestMeta]) -> ManifestColumns:
    """Return the live files of the manifests that still exist.

    If a missing manifest added a file, the DELETE entry of this file is dropped.
    """
    columns = read_manifests(handle.storage, handle.layout, manifests)
    kept = columns.take(cancel_pairs(columns, f"snapshot {head.id} of {handle.uri}"))
    return kept.filter(~kept.is_delete)


def _objection(handle: TableHandle, head: Snapshot, missing: list[ManifestMeta]) -> str | None:
    remedy = (
        "roll back to a complete snapshot with rollback(snapshot=…, as_latest=False) or `lake "
        f"rollback {handle.argument} --snapshot NUMBER --cut-history` (in a script, add --yes), or "
        "restore the manifests from a backup"
    )
    deleting = [each for each in missing if each.num_deleted_files]
    if deleting:
        return (
            f"the missing manifest {deleting[0].file_name} of {handle.uri} recorded the deletion "
            f"of {counted(deleting[0].num_deleted_files, 'file')}: without this manifest their "
            f"rows would reappear, and their names are unknown; {remedy}"
        )
    if head.index_manifest is not None and not handle.schema.primary_keys:
        return (
            f"{handle.uri} has deletion vectors, and it is unknown which of them belong to data "
            f"files that are lost with the manifests; {remedy}"
        )
    return None


def _publish(handle: TableHandle, head: Snapshot, live: ManifestColumns) -> int:
    """Publish a snapshot with the files ``live``; return its number.

    Raise CommitConflictError if another commit is first: the manifests must be checked again. Raise
    CommitOutcomeUnknownError if the storage gives no answer.
    """
    files = AttemptFiles(handle)
    try:
        snapshot = _build(handle, head, live, files)
        outcome = publish(handle, snapshot)
    except LakeError:
        files.delete_all()
        raise
    if outcome is PublishOutcome.COMMITTED:
        try:
            outcome = check_place(handle, snapshot, SnapshotDelta(), head)
        except LakeError as error:
            raise _unknown(handle, snapshot) from error
    if outcome is PublishOutcome.UNKNOWN:
        raise _unknown(handle, snapshot)
    if outcome is PublishOutcome.LOST:
        files.delete_all()
        raise CommitConflictError(
            f"another commit to {handle.uri} was made since snapshot {head.id}, so nothing was "
            "changed: try again"
        )
    write_hints(handle.storage, handle.layout, snapshot.id)
    handle.observe_commit()
    return snapshot.id


def _unknown(handle: TableHandle, snapshot: Snapshot) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"the publication of snapshot {snapshot.id} of {handle.uri}, without the missing "
        f"manifests, got no answer from the storage{or_renamed(handle)}: repeat the "
        "dry run; if it finds no missing manifest, the snapshot is published"
    )


def _build(
    handle: TableHandle, head: Snapshot, live: ManifestColumns, files: AttemptFiles
) -> Snapshot:
    base, delta = files.write_entries(live), files.write_list([])
    rows = int(live.row_count.numbers.sum())
    prefix, unique = handle.options.commit_user_prefix, handle.environment.new_id()
    return replace(
        head,
        id=head.id + 1,
        uuid=handle.environment.new_id(),
        base_manifest_list=base.name,
        base_manifest_list_size=base.size,
        delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size,
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        commit_user=f"{prefix}_{unique}" if prefix else unique,
        commit_identifier=BATCH_IDENTIFIER,
        commit_kind=CommitKind.OVERWRITE,
        time_millis=handle.environment.now_millis(),
        total_record_count=rows,
        delta_record_count=rows - head.total_record_count,
        statistics=None,
        writer_version=None,
        operation=None,
    )


def _lost(missing: list[ManifestMeta]) -> int:
    return sum(each.num_added_files for each in missing)


def _report(
    handle: TableHandle,
    head: Snapshot | None,
    manifests: list[ManifestMeta],
    missing: list[ManifestMeta],
    live: ManifestColumns | None,
    *,
    dry_run: bool,
    objection: str | None = None,
) -> MissingManifestsReport:
    before = 0 if head is None else head.total_record_count
    after = before if live is None else int(live.row_count.numbers.sum())
    of = "" if head is None else f" of the newest snapshot {head.id}"
    are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
    gone = "none is missing"
    if missing:
        record = f"the record of {counted(_lost(missing), 'data file')}"
        gone = f"{len(missing)} {are} missing, and with {them} {record}"
        if objection is None:
            gone += f": {after:,} of {counted(before, 'row')} would remain"
    todo = ""
    if missing and dry_run:
        todo = f"; nothing was changed. Restore {them} from a backup"
        if objection is None:
            todo += f", or remove {them} with dry_run=False{lost_changes(handle)}"
    return MissingManifestsReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshot_id=None if head is None else head.id,
        published=None,
        checked_manifests=len(manifests),
        missing_manifests=tuple(each.file_name for each in missing),
        missing_files=_lost(missing),
        rows_before=before,
        rows_after=after,
        objection=objection,
        reason=f"checked {counted(len(manifests), 'manifest')}{of}: {gone}{todo}",
    )
