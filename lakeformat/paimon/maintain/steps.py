# SPDX-License-Identifier: Apache-2.0
"""The steps of a maintenance, each a call of one operation with its report."""

from __future__ import annotations

from typing import Final

from lakeformat.errors import CommitConflictError
from lakeformat.paimon.compact.compact import compact
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.partition_choice import Chosen
from lakeformat.paimon.compact.plan import plan_compaction
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health import due_places
from lakeformat.paimon.maintain.expiry import expire
from lakeformat.paimon.orphans.remove import OrphanOptions, remove_orphans
from lakeformat.paimon.partitions.expire import ExpireRequest, expire_partitions
from lakeformat.tables.maintain.maintain_report import (
    COMPACT,
    EXPIRE,
    ORPHANS,
    PARTITIONS,
    StepOutcome,
    StepReport,
)
from lakeformat.tables.maintain.orphans import of_orphans
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import Step, not_needed, of_compaction, outcome_of
from lakeformat.types.count_text import counted

__all__ = ["STEPS"]


def _partitions(handle: TableHandle, request: MaintainRequest) -> StepReport:
    if not handle.schema.partition_keys:
        return not_needed(PARTITIONS, "the table has no partitions")
    if handle.options.partition_expiration_time_millis is None:
        return not_needed(PARTITIONS, "'partition.expiration-time' is not set")
    report = expire_partitions(handle, ExpireRequest(), dry_run=request.dry_run)
    left = None
    if report.left:
        left = f"lake maintain {handle.argument}"
    return StepReport(
        step=PARTITIONS,
        outcome=outcome_of(bool(report.expired), request),
        reason=report.reason,
        report=report,
        advice=left,
        snapshot_ids=report.snapshot_ids,
    )


def _compact(handle: TableHandle, request: MaintainRequest) -> StepReport:
    """Compact in full only the buckets that the health report advises to compact.

    Raise CommitConflictError if the compaction may be incomplete, for example because every attempt
    had conflicts with other commits. The error's ``report`` has the finished part.
    """
    handle = newest_schema(handle)
    places = due_places(handle)
    if not places:
        return not_needed(COMPACT, "no bucket is due")
    if request.dry_run:
        return _planned_compaction(handle, places)
    heard = request.units(handle.name, COMPACT)
    report = compact(
        handle,
        chosen=Chosen(places=places),
        executor=request.executor,
        on_progress=heard,
    )
    if report.unfinished is not None:
        error = CommitConflictError(f"{report.table}: {report.unfinished}")
        error.report = report
        raise error
    return of_compaction(report, report.reason)


def _planned_compaction(handle: TableHandle, places: frozenset[tuple[bytes, int]]) -> StepReport:
    plan = plan_compaction(handle, chosen=Chosen(places=places))
    if not plan.units:
        return not_needed(COMPACT, "no bucket is due")
    files_in = sum(len(unit.files) for unit in plan.units)
    return StepReport(
        step=COMPACT,
        outcome=StepOutcome.PLANNED,
        reason=(
            f"would compact {counted(files_in, 'file')} in "
            f"{counted(len({(unit.partition, unit.bucket) for unit in plan.units}), 'bucket')}"
        ),
        report=plan,
        files_in=files_in,
        files_out=sum(unit.expected_files for unit in plan.units),
    )


def _orphans(handle: TableHandle, request: MaintainRequest) -> StepReport:
    report = remove_orphans(
        handle,
        OrphanOptions(),
        dry_run=request.dry_run,
        on_progress=request.removals(handle.name, ORPHANS),
        executor=request.executor,
        commit_comes_first=request.commit_comes_first,
    )
    return of_orphans(report, request, handle.argument, usual_age="a day")


STEPS: Final[dict[str, Step[TableHandle]]] = {
    PARTITIONS: _partitions,
    COMPACT: _compact,
    EXPIRE: expire,
    ORPHANS: _orphans,
}
"""The steps in the order in which they run.

Expired partitions are deleted first, so they are not compacted. The expiry runs after the
compaction, so it can delete the replaced files.
"""
