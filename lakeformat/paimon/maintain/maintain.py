# SPDX-License-Identifier: Apache-2.0
"""Maintenance of one table: measured, cared for step by step, and measured again."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakeformat.errors import LakeError
from lakeformat.paimon.compact.compact_report import CompactReport
from lakeformat.paimon.compact.other_compactor import find_other_compactor
from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.expire import ExpireReport
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport
from lakeformat.paimon.health.misread_options import misread_reasons, without_misread
from lakeformat.paimon.maintain.figures import expected, measure, with_dead_files
from lakeformat.paimon.maintain.maintain_report import (
    COMPACT,
    PARTITIONS,
    Figures,
    MaintainReport,
    StepOutcome,
    StepReport,
    warning_of,
)
from lakeformat.paimon.maintain.obstacles import find_holders, find_obstacles
from lakeformat.paimon.maintain.request import MaintainRequest
from lakeformat.paimon.maintain.steps import STEPS, Step, of_compaction
from lakeformat.paimon.maintain.time_travel import time_travel_note
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.table_by_table import as_defect

__all__ = ["maintain"]

HEALTH = "health"
_COMMITS = (PARTITIONS, COMPACT)
_log = logging.getLogger(__name__)


def maintain(handle: TableHandle, request: MaintainRequest) -> MaintainReport:
    """Run all steps of maintenance in order; a failed step does not stop the next ones.

    Each step does only the work that is due: after an interruption, call this again.
    """
    request.check(handle)
    table = handle.name
    request.begins(table, HEALTH)
    _, before = measure(handle)
    steps: list[StepReport] = []
    for name, step in STEPS.items():
        planned = any(
            each.outcome is StepOutcome.PLANNED for each in steps if each.step in _COMMITS
        )
        steps.append(_run(handle, replace(request, commit_comes_first=planned), table, name, step))
    request.begins(table, HEALTH)
    health, after, holders = _look_again(handle, steps)
    note = time_travel_note(without_misread(handle), health, steps, dry_run=request.dry_run)
    reasons = _lasting(handle) if health is None or request.dry_run else health.reasons
    if request.dry_run:  # nothing has changed, so measuring again would give ``before``
        after = expected(before, steps)
    before, after = with_dead_files(before, after, steps)
    report = MaintainReport(
        table=table,
        location=handle.uri,
        dry_run=request.dry_run,
        before=before,
        after=after,
        steps=tuple(steps),
        obstacles=find_obstacles(handle.argument, steps, holders, reasons),
        note=note,
    )
    _log.info("maintenance of %s: %s", table, report.summary)
    if note is not None:
        _log.info("maintenance of %s: %s", table, note)
    for each in report.obstacles:
        _log.warning("%s: %s", table, warning_of(each))
    return report


def _lasting(handle: TableHandle) -> tuple[Reason, ...]:
    """Return the reasons that no step repairs."""
    other = find_other_compactor(without_misread(handle))
    beside = () if other is None else (Reason(other.finding, other.advice),)
    return (*misread_reasons(handle), *beside)


def _run(
    handle: TableHandle, request: MaintainRequest, table: str, name: str, step: Step
) -> StepReport:
    """Run one step; its error becomes part of the report, so the next steps run."""
    request.begins(table, name)
    try:
        report = step(handle, request)
    except LakeError as error:
        report = _failed(name, error)
    except Exception as error:  # noqa: BLE001 - a defect of one step must not end the others
        _log.exception("step %s of the maintenance of %s failed by a defect", name, handle.uri)
        report = _failed(name, as_defect(error))
    said = report.reason if report.error is None else "failed; a warning below has the reason"
    _log.info("maintenance of %s: %s: %s", table, name, said)
    return report


def _failed(name: str, error: LakeError) -> StepReport:
    """Return the report of a failed step, with the work it completed."""
    said = f"{type(error).__name__}: {error}"
    failed = StepReport(step=name, outcome=StepOutcome.FAILED, reason=said, error=error)
    if name == COMPACT and isinstance(error.report, CompactReport):
        done = of_compaction(error.report)
        return replace(done, outcome=failed.outcome, reason=failed.reason, error=error)
    return failed


def _look_again(
    handle: TableHandle, steps: list[StepReport]
) -> tuple[HealthReport | None, Figures, tuple[StalledConsumer, ...]]:
    """Return the health, figures and stalled consumers after the steps.

    An error is added as a failed step, so that the reports of the other steps are not lost.
    """
    forgotten = [
        name
        for step in steps
        if isinstance(step.report, ExpireReport)
        for name in step.report.consumers
    ]
    try:
        holders = find_holders(without_misread(handle), without=forgotten)
        return *measure(handle), holders
    except LakeError as error:
        steps.append(_failed(HEALTH, error))
        return None, Figures(), ()
