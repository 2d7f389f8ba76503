# SPDX-License-Identifier: Apache-2.0
"""The steps of a maintenance; each calls the operation that does its work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from lakeformat.errors import CommitConflictError
from lakeformat.paimon.compact.compact import compact
from lakeformat.paimon.compact.compact_report import CompactReport
from lakeformat.paimon.compact.partition_choice import Chosen
from lakeformat.paimon.compact.plan import newest_schema, plan_compaction
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health import due_places
from lakeformat.paimon.maintain.expiry import expire
from lakeformat.paimon.maintain.maintain_report import (
    COMPACT,
    EXPIRE,
    ORPHANS,
    PARTITIONS,
    StepOutcome,
    StepReport,
)
from lakeformat.paimon.maintain.request import MaintainRequest
from lakeformat.paimon.orphans.remove import OrphanOptions, remove_orphans
from lakeformat.paimon.partitions.expire import ExpireRequest, expire_partitions
from lakeformat.tables.orphan_report import OrphanReport
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["STEPS", "Step", "of_compaction"]

Step: TypeAlias = Callable[[TableHandle, MaintainRequest], StepReport]


def _partitions(handle: TableHandle, request: MaintainRequest) -> StepReport:
    """Delete expired partitions if the table sets ``partition.expiration-time``."""
    if not handle.schema.partition_keys:
        return _not_needed(PARTITIONS, "the table has no partitions")
    if handle.options.partition_expiration_time_millis is None:
        return _not_needed(PARTITIONS, "'partition.expiration-time' is not set")
    report = expire_partitions(handle, ExpireRequest(), dry_run=request.dry_run)
    left = None
    if report.left:
        left = f"lake maintain {handle.argument}"
    return StepReport(
        step=PARTITIONS,
        outcome=_outcome(bool(report.expired), request),
        reason=report.reason,
        report=report,
        advice=left,
        snapshot_ids=report.snapshot_ids,
    )


def _compact(handle: TableHandle, request: MaintainRequest) -> StepReport:
    """Compact the due buckets in full, and only these."""
    handle = newest_schema(handle)
    places = due_places(handle)
    if not places:
        return _not_needed(COMPACT, "no bucket is due")
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
    return of_compaction(report)


def of_compaction(report: CompactReport) -> StepReport:
    """Return the report of the step, made from the report of its compaction."""
    if not report.snapshot_ids:
        return _not_needed(COMPACT, report.reason)
    return StepReport(
        step=COMPACT,
        outcome=StepOutcome.DONE,
        reason=(
            f"compacted {counted(report.files_in, 'file')} of {size(report.bytes_in)} into "
            f"{report.files_out:,} of {size(report.bytes_out)}"
        ),
        report=report,
        files_in=report.files_in,
        files_out=report.files_out,
        snapshot_ids=report.snapshot_ids,
    )


def _planned_compaction(handle: TableHandle, places: frozenset[tuple[bytes, int]]) -> StepReport:
    plan = plan_compaction(handle, chosen=Chosen(places=places))
    if not plan.units:
        return _not_needed(COMPACT, "no bucket is due")
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
    """Remove files that nothing refers to and that are older than the default age limit."""
    report = remove_orphans(
        handle,
        OrphanOptions(),
        dry_run=request.dry_run,
        on_progress=request.removals(handle.name, ORPHANS),
        executor=request.executor,
        commit_comes_first=request.commit_comes_first,
    )
    is_left = bool(report.failures) or report.objection is not None
    return StepReport(
        step=ORPHANS,
        outcome=_outcome(bool(report.orphan_files), request),
        reason=_orphans_reason(report, handle.argument),
        report=report,
        advice=f"lake orphans {handle.argument}" if is_left else None,
        removed_files=report.removed_files,
        removed_bytes=report.removed_bytes,
    )


def _orphans_reason(report: OrphanReport, table: str) -> str:
    parts = ["no orphan files"]
    if report.orphan_files:
        dead, held = counted(report.orphan_files, "orphan file"), size(report.orphan_bytes)
        if report.dry_run:
            parts = [f"would remove {dead} of {held}"]
        else:
            removed = counted(report.removed_files, "orphan file")
            parts = [f"removed {removed} of {size(report.removed_bytes)}"]
    if report.failures:
        parts.append(f"{counted(report.failures, 'file')} could not be removed")
    if report.objection is not None:
        parts.append(f"the removal would be refused: {report.objection}")
    if report.young_files:
        parts.append(_young_files(report, table))
    return ", ".join(parts)


def _young_files(report: OrphanReport, table: str) -> str:
    """Return the clause about unreferenced files that are too young to be removed."""
    young = counted(report.young_files, "file")
    if report.kept_by_commit is None:
        return f"kept {young} younger than a day"
    return (
        f"kept {young} that no snapshot needs, changed at {report.older_than} or later: a write "
        f"that began within a day before the newest commit, snapshot {report.kept_by_commit}, may "
        f"still need them. If no write is running: lake orphans {table} --older-than '1 d' "
        "--remove"
    )


def _not_needed(step: str, reason: str) -> StepReport:
    return StepReport(step=step, outcome=StepOutcome.NOT_NEEDED, reason=reason)


def _outcome(has_work: bool, request: MaintainRequest) -> StepOutcome:
    if not has_work:
        return StepOutcome.NOT_NEEDED
    return StepOutcome.PLANNED if request.dry_run else StepOutcome.DONE


STEPS: Final[dict[str, Step]] = {
    PARTITIONS: _partitions,
    COMPACT: _compact,
    EXPIRE: expire,
    ORPHANS: _orphans,
}
"""The steps in the order they run: expired partitions need no compaction, and the expiry comes
after the compaction whose replaced files it may delete."""
