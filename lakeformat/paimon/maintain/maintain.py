# SPDX-License-Identifier: Apache-2.0
"""Maintains one table: measures it, runs the steps, and measures it again."""

from __future__ import annotations

import logging

from lakeformat.errors import LakeError
from lakeformat.paimon.compact.other_compactor import find_other_compactor
from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.expire import ExpireReport
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport
from lakeformat.paimon.health.misread_options import misread_reasons, without_misread
from lakeformat.paimon.maintain.figures import measure
from lakeformat.paimon.maintain.holders import find_holders
from lakeformat.paimon.maintain.steps import STEPS
from lakeformat.paimon.maintain.time_travel import time_travel_note
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.figures import expected, with_dead_files
from lakeformat.tables.maintain.maintain_report import Figures, MaintainReport, StepReport
from lakeformat.tables.maintain.obstacles import find_obstacles
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import HEALTH, StepRunner, failed_step, log_report

__all__ = ["maintain"]

_log = logging.getLogger(__name__)


def maintain(handle: TableHandle, request: MaintainRequest) -> MaintainReport:
    """Run all steps of a maintenance in order; a failed step does not stop the next ones.

    Each step does only the work that is due, so after an interruption repeat the call.
    """
    request.check(handle.environment.now_millis())
    table = handle.name
    request.begins(table, HEALTH)
    _, before = measure(handle)
    steps = StepRunner(table, handle.uri, handle, _log).run(STEPS, request)
    request.begins(table, HEALTH)
    health, after, holders = _look_again(handle, steps)
    note = time_travel_note(without_misread(handle), health, steps, dry_run=request.dry_run)
    reasons = _lasting(handle) if health is None or request.dry_run else health.reasons
    if request.dry_run:  # nothing has changed, so a second measurement would give ``before``
        after = expected(before, steps)
    before, after = with_dead_files(before, after, steps)
    stalled = {
        f"consumer {each.id!r}": Reason(each.finding, each.advice_to_maintain(handle.argument))
        for each in holders
    }
    report = MaintainReport(
        table=table,
        location=handle.uri,
        dry_run=request.dry_run,
        before=before,
        after=after,
        steps=tuple(steps),
        obstacles=find_obstacles(handle.argument, steps, stalled, reasons),
        note=note,
    )
    log_report(_log, report)
    return report


def _lasting(handle: TableHandle) -> tuple[Reason, ...]:
    """Return the reasons of the health report that no step of a maintenance can remove."""
    other = find_other_compactor(without_misread(handle))
    beside = () if other is None else (Reason(other.finding, other.advice),)
    return (*misread_reasons(handle), *beside)


def _look_again(
    handle: TableHandle, steps: list[StepReport]
) -> tuple[HealthReport | None, Figures, tuple[StalledConsumer, ...]]:
    """Return the health, the numbers and the stalled consumers after the steps.

    An error is added to ``steps`` as a failed step, so that the reports of the other steps are not
    lost.
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
        steps.append(failed_step(HEALTH, error))
        return None, Figures(), ()
