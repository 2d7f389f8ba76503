# SPDX-License-Identifier: Apache-2.0
"""Expires snapshots and changelogs by the table's own retention, in rounds, until none is due."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.paimon.deletion import FileClass
from lakeformat.paimon.expire import ExpireReport, expire_snapshots
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.tables.maintain.maintain_report import EXPIRE, StepOutcome, StepReport
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["expire"]

_OF_ROWS = (FileClass.DATA, FileClass.CHANGELOG, FileClass.INDEX)
_ROUNDS = 10
"""The largest number of expiries in one step. More than one may be needed: the changelogs of
expired snapshots are due only in the next expiry.
"""


def expire(handle: TableHandle, request: MaintainRequest) -> StepReport:
    """Run up to ten expiries, until nothing is due; a dry run runs only one.

    The table options set the limits, but ``snapshot.expire.limit`` does not apply. Consumers
    without progress since ``request.expire_consumers`` are deleted, too.
    """
    table = handle.name
    reports: list[ExpireReport] = []
    for _ in range(1 if request.dry_run else _ROUNDS):
        report = expire_snapshots(
            handle,
            limit=_all_there_are(handle),
            consumers_older_than=request.expire_consumers,
            dry_run=request.dry_run,
            on_progress=request.removals(table, EXPIRE) or _ignored,
        )
        reports.append(report)
        if not _goes_on(report):
            break
    removed = sum(each.deleted.total for each in reports)
    has_work = removed or any(each.consumers or each.finished for each in reports)
    outcome = StepOutcome.PLANNED if request.dry_run else StepOutcome.DONE
    return StepReport(
        step=EXPIRE,
        outcome=outcome if has_work else StepOutcome.NOT_NEEDED,
        reason=_reason(reports),
        report=reports[-1],
        advice=None if reports[-1].is_complete else f"lake maintain {handle.argument}",
        snapshots=sum(len(each.snapshots) for each in reports),
        changelogs=sum(len(each.changelogs) for each in reports),
        removed_files=0 if request.dry_run else removed,
        removed_bytes=0 if request.dry_run else sum(each.deleted.bytes for each in reports),
    )


def _all_there_are(handle: TableHandle) -> int:
    """Return a limit that no expiry reaches: the number of all snapshots and changelogs."""
    storage, layout = handle.storage, handle.layout
    return max(len(snapshot_ids(storage, layout)) + len(changelog_ids(storage, layout)), 1)


def _goes_on(report: ExpireReport) -> bool:
    return report.is_complete and bool(report.snapshots or report.changelogs)


def _ignored(_: object) -> None:
    """Do nothing.

    As the listener of a dry run, this function keeps the list of files out of the report.
    """


def _reason(reports: Sequence[ExpireReport]) -> str:
    last = reports[-1]
    would = "would expire" if last.dry_run else "expired"
    snapshots = sum(len(each.snapshots) for each in reports)
    changelogs = sum(len(each.changelogs) for each in reports)
    consumers = [name for each in reports for name in each.consumers]
    expired = [
        counted(number, noun)
        for number, noun in ((snapshots, "snapshot"), (changelogs, "changelog"))
        if number
    ]
    parts = []
    if consumers:
        names = ", ".join(map(repr, consumers))
        verb = "would delete" if last.dry_run else "deleted"
        parts.append(f"{verb} {counted(len(consumers), 'consumer')} ({names})")
    removed = sum(each.deleted.total for each in reports)
    if expired or removed:
        if expired:
            parts.append(f"{would} {' and '.join(expired)} with {_files(reports)}")
        else:
            verb = "would delete" if last.dry_run else "deleted"
            parts.append(f"{verb} {_files(reports)} that an interrupted expiry left")
    elif not consumers:
        return f"no snapshot is due: {last.reason}"
    failures = sum(each.deleted.failures for each in reports)
    if failures:
        parts.append(f"{counted(failures, 'file')} could not be removed")
    return f"{', '.join(parts)}; {last.reason}"


def _files(reports: Sequence[ExpireReport]) -> str:
    """Return the number and the size of the deleted files as text, with the number of metadata
    files among them.
    """
    total = sum(each.deleted.total for each in reports)
    of_rows = sum(each.deleted.files.get(kind, 0) for each in reports for kind in _OF_ROWS)
    held = size(sum(each.deleted.bytes for each in reports))
    if not of_rows:
        return f"{counted(total, 'metadata file')} of {held}"
    metadata = total - of_rows
    also = f", {metadata:,} of them metadata" if metadata else ""
    return f"{counted(total, 'file')} of {held}{also}"
