"""Removes files nothing leads to: looks first, says what would go, and deletes last."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, field, replace

from lakeformat.errors import InvalidRequestError
from lakeformat.executor import Executor
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
from lakeformat.paimon.orphans.floor import AgeFloor, find_floor
from lakeformat.paimon.orphans.orphan_report import OrphanFile, OrphanReport
from lakeformat.paimon.orphans.readers import readers_of
from lakeformat.paimon.orphans.references import find_references
from lakeformat.paimon.orphans.scan import Candidate, Scan, newest_number_at, scan_table
from lakeformat.paimon.read.past_time import PastTime
from lakeformat.paimon.read.time_travel import Moment, moment_text
from lakeformat.types.count_text import counted

__all__ = ["OrphanOptions", "remove_orphans"]

_NAMED_FILES = 1_000
_FEW_FILES = 100
"""Of so few orphans no share of the table is suspicious."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanOptions:
    """What can be said about a removal."""

    older_than: PastTime | None = None
    running_since: Moment | None = None
    """When the oldest write under way began: its files are not too old, whatever their age."""
    allow_younger: bool = False
    """Set the age floor aside; only while nobody writes."""
    in_use: tuple[CommitMessage, ...] = ()
    """Prepared and not committed yet: their files stay."""
    max_share: float = 0.5
    """If more than this part of the table's files or bytes would go, something is wrong."""
    external_paths: bool = False
    """Look there too; only where no other table keeps files there."""

    def __post_init__(self) -> None:
        share: object = self.max_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidRequestError(f"max_share is a part above 0 and up to 1, got {share!r}")
        for message in self.in_use:
            if not isinstance(message, CommitMessage):
                raise InvalidRequestError(f"in_use holds commit messages, got {message!r}")


def remove_orphans(
    handle: TableHandle,
    options: OrphanOptions,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
    executor: str | Executor | None = None,
    commit_comes_first: bool = False,
) -> OrphanReport:
    """Find the files nothing leads to, and remove them unless it is a dry run.

    An ``executor`` reads manifests and lists directories; what goes is decided and removed here.
    A dry run with ``commit_comes_first`` reckons as after a commit made now: without it, files
    written since a day before the newest commit are kept.
    Killed at any moment it has removed some of them, and the next run removes the rest.
    """
    require_same_table(handle)
    floor = find_floor(
        handle.environment.now_millis(),
        older_than=options.older_than,
        running_since=options.running_since,
        allow_younger=options.allow_younger,
    )
    readers = readers_of(handle, executor)
    references = find_references(handle, readers)
    for message in options.in_use:
        references.keep_written(message)
    floor = by_storage_clock(
        handle,
        floor,
        references.newest.get(MAIN_BRANCH),
        is_told=(
            options.older_than is not None
            or options.running_since is not None
            or (dry_run and commit_comes_first)
        ),
        may_write=not dry_run,
    )
    directories = find_directories(handle, external_paths=options.external_paths, readers=readers)
    with closing(Scan(references)) as scan:
        scan_table(scan, handle, directories, floor.millis)
        plan = _plan(scan, floor)
        objection = _objection(handle, scan, plan, options.max_share)
        if objection is not None and not dry_run:
            raise InvalidRequestError(objection)
        deleter = Deleter(handle, dry_run=dry_run, on_progress=on_progress)
        emptied = _remove(handle, plan, scan, deleter)
    report = _report(handle, plan, scan, deleter, dry_run=dry_run, objection=objection)
    if not dry_run and handle.options.snapshot_clean_empty_directories:
        report = replace(report, removed_directories=remove_empty_directories(handle, emptied))
    if not options.external_paths:
        report = replace(report, external_paths_left_out=directories.external_paths)
    _log.info("orphan files of %s: %s", handle.name, report.reason)
    return report


@dataclass(slots=True)
class _Plan:
    """What is to go."""

    floor: AgeFloor
    times: list[tuple[int, int]]
    """When each snapshot of the main branch was committed, and its number."""
    looked_through: str
    files: int = 0
    bytes: int = 0
    named: list[OrphanFile] = field(default_factory=list)

    def removal(self, candidate: Candidate) -> Removal:
        """A file with the reason why it goes."""
        newest = newest_number_at(self.times, candidate.modified_millis)
        then = (
            f"when snapshot {newest} was the newest" if newest else "before any snapshot still kept"
        )
        reason = (
            f"nothing leads to it: {self.looked_through} were read; "
            f"last changed {moment_text(candidate.modified_millis)}, {then}"
        )
        return Removal(candidate.storage, candidate.path, candidate.kind, reason, candidate.size)


def _plan(scan: Scan, floor: AgeFloor) -> _Plan:
    references = scan.references
    times = sorted((time, number) for number, time in references.times.items())
    plan = _Plan(floor, times, str(references.looked_through))
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


def _remove(handle: TableHandle, plan: _Plan, scan: Scan, deleter: Deleter) -> set[str]:
    """Look again, then delete, some files at a time; the directories that lost some."""
    emptied: set[str] = set()
    for candidates in scan.candidates():
        removals = [plan.removal(each) for each in candidates]
        deleter.remove(removals)
        emptied |= bucket_directories(handle, removals)
    return emptied


def _objection(handle: TableHandle, scan: Scan, plan: _Plan, max_share: float) -> str | None:
    """Why so much must not go without another word."""
    if not plan.files or max_share == 1:
        return None
    remedy = "look at a dry run, and say max_share=1 if it is right"
    if scan.references.looked_through.is_nothing:
        return (
            f"{handle.uri} has no snapshot, tag or changelog, so all its files look as if nothing "
            f"led to them: {remedy}"
        )
    share = max(plan.files / scan.files, plan.bytes / max(scan.bytes, 1))
    if plan.files <= _FEW_FILES or share <= max_share:
        return None
    return (
        f"{plan.files} of {counted(scan.files, 'file')} of {handle.uri} would go, {share:.0%} of "
        f"its files or bytes and more than max_share={max_share:.0%}: something may be wrong; "
        f"{remedy}"
    )


def _report(
    handle: TableHandle,
    plan: _Plan,
    scan: Scan,
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


def _reason(plan: _Plan, scan: Scan, deleter: Deleter, *, dry_run: bool) -> str:
    files = counted(scan.files, "file")
    if not plan.files:
        return f"no orphans: each of {files} is referenced or newer than the age limit"
    if dry_run:
        return f"nothing leads to {plan.files} of {files}; nothing was removed"
    deleted = deleter.deleted
    failed = f", {deleted.failures} would not go and are left to the next run"
    return f"removed {deleted.total} of {files}{failed if deleted.failures else ''}"
