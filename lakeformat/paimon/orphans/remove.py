# SPDX-License-Identifier: Apache-2.0
"""Removes orphan files: finds them, deletes them, and makes the report."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, field, replace

from lakeformat.errors import InvalidRequestError
from lakeformat.executor import Executor
from lakeformat.paimon.branches.observed import observed_files
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.deletion import (
    Deleter,
    OnRemoval,
    Removal,
    bucket_directories,
    remove_empty_directories,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.orphans.clock import by_storage_clock
from lakeformat.paimon.orphans.directories import find_directories
from lakeformat.paimon.orphans.lost_snapshots import lost_snapshots
from lakeformat.paimon.orphans.readers import readers_of
from lakeformat.paimon.orphans.references import find_references
from lakeformat.paimon.orphans.scan import (
    Candidate,
    OrphanScan,
    newest_number_at,
    scan_observed,
    scan_table,
)
from lakeformat.tables.age_floor import AgeFloor, find_floor
from lakeformat.tables.moment import Moment, moment_text
from lakeformat.tables.orphan_report import OrphanFile, OrphanReport
from lakeformat.tables.past_time import PastTime
from lakeformat.types.count_text import counted

__all__ = ["OrphanOptions", "remove_orphans"]

_NAMED_FILES = 1_000
_FEW_FILES = 100
"""Up to this number of orphans, ``max_share`` is not checked."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanOptions:
    """The options of a removal of orphan files."""

    older_than: PastTime | None = None
    running_since: Moment | None = None
    """The start of the oldest write in progress; files written since then are kept."""
    allow_younger: bool = False
    """True to accept an ``older_than`` within the last day or after ``running_since``; only safe
    without writers.
    """
    in_use: tuple[CommitMessage, ...] = ()
    """Uncommitted messages whose files are kept."""
    max_share: float = 0.5
    """The largest share of files or bytes that may be removed.

    If a removal has more than 100 files, a larger share is refused. If the table has no snapshots,
    tags and changelogs, every removal is refused unless ``max_share`` is 1.
    """
    external_paths: bool = False
    """True to also remove orphans at external paths; only safe if no other table stores files
    there.
    """

    def __post_init__(self) -> None:
        share: object = self.max_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidRequestError(f"max_share must be above 0 and at most 1, got {share!r}")
        for message in self.in_use:
            if not isinstance(message, CommitMessage):
                raise InvalidRequestError(
                    "in_use must contain CommitMessages, but one item is of "
                    f"type {type(message).__name__}: pass the messages of writer.prepare(); "
                    "convert bytes with CommitMessage.from_bytes"
                )


def remove_orphans(
    handle: TableHandle,
    options: OrphanOptions,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
    executor: str | Executor | None = None,
    commit_comes_first: bool = False,
) -> OrphanReport:
    """Find orphan files, and delete them unless it is a dry run.

    An ``executor`` reads manifests and lists directories; this process decides and deletes. Unless
    ``options`` set ``older_than`` or ``running_since``, files written since one day before the
    newest commit are kept. Pass ``commit_comes_first=True`` to a dry run if the real removal would
    follow a new commit: the dry run then takes the current time as the time of the newest commit.
    If the removal is interrupted, the next run deletes the remaining orphans.

    Raise InvalidRequestError for an age limit that is too recent, even in a dry run. Refuse the
    removal if ``max_share`` forbids it, or if there are orphans and the newest snapshots may be
    lost. A refused removal raises InvalidRequestError; a dry run only reports the reason.
    """
    require_same_table(handle)
    if not dry_run:
        handle.require_published()  # an interrupted rollback leaves metadata that names its orphans
    floor = find_floor(
        handle.environment.now_millis(),
        older_than=options.older_than,
        running_since=options.running_since,
        allow_younger=options.allow_younger,
    )
    readers = readers_of(handle, executor)
    references = find_references(handle, readers)
    lost = lost_snapshots(handle, {name: each.id for name, each in references.newest.items()})
    for message in options.in_use:
        references.keep_written(message)
    floor = by_storage_clock(
        handle,
        floor,
        references.newest.get(MAIN_BRANCH),
        is_explicit=(
            options.older_than is not None
            or options.running_since is not None
            or (dry_run and commit_comes_first)
        ),
        may_write=not dry_run,
    )
    observed = [*observed_files(handle)]
    directories = find_directories(handle, external_paths=options.external_paths, readers=readers)
    with closing(OrphanScan(references)) as scan:
        scan_table(scan, handle, directories, floor.millis)
        for each in observed:
            scan_observed(scan, each, floor.millis)
        plan = _plan(scan, floor)
        objection = _objection(handle, scan, plan, options.max_share)
        if lost is not None and plan.files:
            objection = lost
        elif lost is not None:
            _log.warning("%s", lost)  # for a branch, no other check of the table reports it
        if objection is not None and not dry_run:
            raise InvalidRequestError(objection)
        deleter = Deleter(
            handle.options.file_operation_threads, dry_run=dry_run, on_progress=on_progress
        )
        emptied = _remove(handle, plan, scan, deleter)
    report = _report(handle, plan, scan, deleter, dry_run=dry_run, objection=objection)
    if not dry_run and handle.options.snapshot_clean_empty_directories:
        report = replace(report, removed_directories=remove_empty_directories(handle, emptied))
    if not options.external_paths:
        report = replace(report, external_paths_left_out=directories.external_paths)
    _log.info("orphan files of %s: %s", handle.name, report.reason)
    return report


@dataclass(slots=True)
class _PlannedRemovals:
    floor: AgeFloor
    times: list[tuple[int, int]]
    """The commit time in epoch milliseconds and the number of each snapshot of the branch main,
    sorted.
    """
    looked_through: str
    files: int = 0
    bytes: int = 0
    named: list[OrphanFile] = field(default_factory=list)

    def removal(self, candidate: Candidate) -> Removal:
        newest = newest_number_at(self.times, candidate.modified_millis)
        then = (
            f"when snapshot {newest} was the newest" if newest else "before any snapshot still kept"
        )
        reason = (
            f"no reference in {self.looked_through}; "
            f"last changed {moment_text(candidate.modified_millis)}, {then}"
        )
        return Removal(candidate.storage, candidate.path, candidate.kind, reason, candidate.size)


def _plan(scan: OrphanScan, floor: AgeFloor) -> _PlannedRemovals:
    references = scan.references
    times = sorted((time, number) for number, time in references.times.items())
    plan = _PlannedRemovals(floor, times, str(references.looked_through))
    for candidates in scan.candidates():
        plan.files += len(candidates)
        plan.bytes += sum(each.size for each in candidates)
        for each in candidates[: _NAMED_FILES - len(plan.named)]:
            removal = plan.removal(each)
            plan.named.append(
                OrphanFile(
                    path=removal.uri,
                    kind=str(removal.kind),
                    size=each.size,
                    modified_millis=each.modified_millis,
                    newest_snapshot=newest_number_at(times, each.modified_millis),
                    reason=removal.reason,
                )
            )
    return plan


def _remove(
    handle: TableHandle, plan: _PlannedRemovals, scan: OrphanScan, deleter: Deleter
) -> set[str]:
    """Delete the planned files in batches, and return the bucket directories that lost files.

    Keep files that got a reference since the plan, or whose writer may still be active.
    """
    emptied: set[str] = set()
    for candidates in scan.candidates():
        removals = [plan.removal(each) for each in candidates]
        deleter.remove(removals)
        emptied |= bucket_directories(handle, removals)
    return emptied


def _objection(
    handle: TableHandle, scan: OrphanScan, plan: _PlannedRemovals, max_share: float
) -> str | None:
    """Return the error message that refuses a removal of too large a share of the table.

    Return None if the removal is allowed.
    """
    if not plan.files or max_share == 1:
        return None
    remedy = (
        "check the files that a dry run lists, and pass max_share=1 if all of them may be deleted"
    )
    if scan.references.looked_through.is_nothing:
        return (
            f"{handle.uri} has no snapshot, tag or changelog, so all its files look like orphans: "
            f"{remedy}"
        )
    share = max(plan.files / scan.files, plan.bytes / max(scan.bytes, 1))
    if plan.files <= _FEW_FILES or share <= max_share:
        return None
    return (
        f"{plan.files} of {counted(scan.files, 'file')} of {handle.uri} would be removed, which is "
        f"{share:.0%} of its files or bytes and more than max_share={max_share:.0%}: something "
        f"may be wrong; {remedy}"
    )


def _report(
    handle: TableHandle,
    plan: _PlannedRemovals,
    scan: OrphanScan,
    deleter: Deleter,
    *,
    dry_run: bool,
    objection: str | None,
) -> OrphanReport:
    deleted = deleter.deleted
    return OrphanReport(
        table=handle.uri,
        dry_run=dry_run,
        older_than=plan.floor.moment,
        older_than_reason=plan.floor.reason,
        override=plan.floor.override,
        looked_through=plan.looked_through,
        scanned_files=scan.files,
        scanned_bytes=scan.bytes,
        orphan_files=plan.files,
        orphan_bytes=plan.bytes,
        removed_files=0 if dry_run else deleted.total,
        removed_bytes=0 if dry_run else deleted.bytes,
        removed_directories=0,
        failures=deleted.failures,
        failed=tuple(deleted.failed),
        young_files=scan.young_files,
        young_bytes=scan.young_bytes,
        kept_by_commit=plan.floor.commit,
        writing_files=scan.writing_files,
        unknown_files=scan.unknown_files,
        external_paths_left_out=(),
        objection=objection,
        files=tuple(plan.named),
        files_left_out=plan.files - len(plan.named),
        reason=_reason(plan, scan, deleter, dry_run=dry_run),
    )


def _reason(plan: _PlannedRemovals, scan: OrphanScan, deleter: Deleter, *, dry_run: bool) -> str:
    files = counted(scan.files, "file")
    if not plan.files:
        kept = "referenced or newer than the age limit"
        if scan.writing_files or scan.unknown_files:
            kept = (
                "referenced, newer than the age limit, of unknown age, "
                "or of an active or unknown writer"
            )
        if not scan.files:
            return "no orphans: the table has no files to check"
        each = "the only file" if scan.files == 1 else f"each of {files}"
        return f"no orphans: {each} is {kept}"
    if dry_run:
        return f"orphans: {plan.files} of {files}; dry run, so none was removed"
    deleted = deleter.deleted
    failed = f", could not remove {deleted.failures}, which the next run tries again"
    return (
        f"removed {counted(deleted.total, 'orphan')} of {files}{failed if deleted.failures else ''}"
    )
