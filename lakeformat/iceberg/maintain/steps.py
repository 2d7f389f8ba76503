# SPDX-License-Identifier: Apache-2.0
"""The steps of the maintenance of an Iceberg table; each step calls one operation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar, Final

from lakeformat.iceberg.compact.compact import compact
from lakeformat.iceberg.compact.options import CompactSelection, compact_selection
from lakeformat.iceberg.compact.plan import plan_compaction
from lakeformat.iceberg.compact_manifests.compact_manifests import compact_manifests
from lakeformat.iceberg.deletes.compact_deletes import compact_deletes
from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.iceberg.health.reasons import has_costly_keys, has_many_dangling, has_many_small
from lakeformat.iceberg.maintain.stalled import Consumers
from lakeformat.iceberg.maintain.subject import Subject
from lakeformat.iceberg.orphans.remove import OrphanOptions, remove_orphans
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.maintain.maintain_report import (
    COMPACT,
    COMPACT_DELETES,
    COMPACT_MANIFESTS,
    EXPIRE,
    ORPHANS,
    MaintainProgress,
    StepOutcome,
    StepReport,
)
from lakeformat.tables.maintain.orphans import of_orphans
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import Step, not_needed, of_compaction, outcome_of
from lakeformat.types.count_text import counted

__all__ = ["NOT_OURS", "STEPS", "IcebergProgress", "expire_step", "ignored"]

NOT_OURS = "'gc.enabled' = 'false': other tables may use the files of this one"


class IcebergProgress(MaintainProgress):
    """The running step of the maintenance of an Iceberg table, and how much of its work is done."""

    __slots__ = ()

    steps: ClassVar[tuple[str, ...]] = (
        COMPACT_DELETES,
        COMPACT,
        COMPACT_MANIFESTS,
        EXPIRE,
        ORPHANS,
    )


def _compact_deletes(subject: Subject, request: MaintainRequest) -> StepReport:
    """Compact delete files if many apply to no data file, or if equality deletes make reads slow.

    In the second case, equality deletes are replaced by positions.
    """
    health = subject.health()
    with_keys = has_costly_keys(health.files, health.deletes)
    if not with_keys and not has_many_dangling(health.deletes):
        return not_needed(COMPACT_DELETES, "no delete file is due")
    report = compact_deletes(subject.handle, convert_equality=with_keys, dry_run=request.dry_run)
    return StepReport(
        step=COMPACT_DELETES,
        outcome=outcome_of(bool(report.dangling or report.replaced), request),
        reason=report.reason,
        report=report,
        snapshot_ids=_published(report.snapshot_id),
    )


def _compact(subject: Subject, request: MaintainRequest) -> StepReport:
    """Rewrite the data files that are due by the rules of Java's ``rewrite_data_files``."""
    wanted = compact_selection(None, None, {"strategy": "minor"})
    if request.dry_run:
        return _planned_compaction(subject, wanted)
    report = compact(
        subject.handle,
        wanted,
        executor=request.executor,
        on_progress=request.units(subject.handle.uri, COMPACT),
    )
    return of_compaction(report, "no group of files is due")


def _planned_compaction(subject: Subject, wanted: CompactSelection) -> StepReport:
    plan = plan_compaction(subject.handle, wanted)
    if not plan.units:
        return not_needed(COMPACT, "no group of files is due")
    files_in = sum(len(unit.files) for unit in plan.units)
    groups = counted(len(plan.units), "group")
    return StepReport(
        step=COMPACT,
        outcome=StepOutcome.PLANNED,
        reason=f"would compact {counted(files_in, 'file')} in {groups}",
        report=plan,
        files_in=files_in,
        files_out=sum(unit.expected_files for unit in plan.units),
    )


def _compact_manifests(subject: Subject, request: MaintainRequest) -> StepReport:
    """Merge manifests if there are so many small ones that an append by Iceberg's Java library
    would merge them.
    """
    if not has_many_small(subject.settings, subject.health().manifests):
        return not_needed(COMPACT_MANIFESTS, "too few small manifests to merge")
    report = compact_manifests(subject.handle, dry_run=request.dry_run)
    return StepReport(
        step=COMPACT_MANIFESTS,
        outcome=outcome_of(bool(report.manifests_merged), request),
        reason=report.reason,
        report=report,
        snapshot_ids=_published(report.snapshot_id),
    )


def _expire(subject: Subject, request: MaintainRequest) -> StepReport:
    """Delete consumers as requested, and expire snapshots by the table properties."""

    def expire(expired: Collection[ConsumerState]) -> IcebergExpireReport:
        return expire_snapshots(
            subject.handle,
            ExpiryRequest(unread=partial(subject.consumers.unread, without=expired)),
            dry_run=request.dry_run,
            on_progress=request.removals(subject.handle.uri, EXPIRE) or ignored,
        )

    refusal = None if subject.settings.may_expire else NOT_OURS
    return expire_step(subject.consumers, subject.argument, request, expire, refusal)


def expire_step(
    of_table: Consumers,
    argument: str,
    request: MaintainRequest,
    expire: Callable[[Collection[ConsumerState]], IcebergExpireReport],
    refusal: str | None,
) -> StepReport:
    """Delete consumers as requested, call ``expire`` with them, and return the report of the step.

    ``expire`` gets the deleted consumers; in a dry run, those that would be deleted. If ``refusal``
    is given, ``expire`` is not called, and ``refusal`` is in the report as the reason. ``argument``
    is the name of the table for commands in the advice.
    """
    expired: list[ConsumerState] = []
    if request.expire_consumers is not None:
        expired = [*of_table.expire(request.expire_consumers, dry_run=request.dry_run)]
    consumers = _consumers_text(expired, dry_run=request.dry_run)
    if refusal is not None:
        return StepReport(
            step=EXPIRE,
            outcome=outcome_of(bool(expired), request),
            reason="; ".join([*consumers, refusal]),
        )
    report = expire(expired)
    return StepReport(
        step=EXPIRE,
        outcome=outcome_of(bool(report.has_work or expired), request),
        reason="; ".join([*consumers, report.reason]),
        report=report,
        advice=None if report.is_complete else f"lake orphans {argument}",
        snapshots=len(report.snapshots),
        removed_files=0 if request.dry_run else report.deleted.total,
        removed_bytes=0 if request.dry_run else report.deleted.bytes,
    )


def _consumers_text(expired: list[ConsumerState], *, dry_run: bool) -> list[str]:
    if not expired:
        return []
    names = ", ".join(repr(each.id) for each in expired)
    verb = "would delete" if dry_run else "deleted"
    return [f"{verb} {counted(len(expired), 'consumer')} ({names})"]


def ignored(_: object) -> None:
    """Ignore progress.

    A dry run of the expiry needs a callback: without one, its report would list every file.
    """


def _orphans(subject: Subject, request: MaintainRequest) -> StepReport:
    """Remove orphan files that are older than the default age limit."""
    if not subject.settings.may_expire:
        return not_needed(ORPHANS, NOT_OURS)
    handle = subject.handle
    report = remove_orphans(
        handle,
        OrphanOptions(),
        dry_run=request.dry_run,
        on_progress=request.removals(handle.uri, ORPHANS),
    )
    return of_orphans(report, request, subject.argument, usual_age="three days")


def _published(snapshot_id: int | None) -> tuple[int, ...]:
    return () if snapshot_id is None else (snapshot_id,)


STEPS: Final[dict[str, Step[Subject]]] = {
    COMPACT_DELETES: _compact_deletes,
    COMPACT: _compact,
    COMPACT_MANIFESTS: _compact_manifests,
    EXPIRE: _expire,
    ORPHANS: _orphans,
}
"""The steps in the order in which they run.

The compaction rewrites files with many deleted rows, but it counts only deletes that apply to a
single file. So equality deletes are replaced before the compaction. The expiry runs after the
compactions, so that it can delete files that they replaced.
"""
