# SPDX-License-Identifier: Apache-2.0
"""Maintains one table: checks its health, runs each step, and checks its health again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TypeVar

from lakeformat.errors import LakeError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.health import IcebergHealthReport
from lakeformat.iceberg.maintain.stalled import Consumers
from lakeformat.iceberg.maintain.steps import STEPS
from lakeformat.iceberg.maintain.subject import Maintained, Subject
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.figures import expected, with_dead_files
from lakeformat.tables.maintain.maintain_report import (
    ORPHANS,
    Figures,
    MaintainReport,
    StepReport,
)
from lakeformat.tables.maintain.obstacles import find_obstacles
from lakeformat.tables.maintain.orphans import refused
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import HEALTH, Step, StepRunner, failed_step, log_report

__all__ = ["maintain", "maintain_by_steps"]

_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Maintained)


def maintain(handle: TableHandle, consumers: Consumers, request: MaintainRequest) -> MaintainReport:
    """Run all steps of the maintenance in order; after a failed step the next step runs.

    Each step does only work that is due. After an interruption, call this function again. Raise
    ``UnsupportedError`` if the table cannot be changed, and ``InvalidRequestError`` for a wrong
    request.
    """
    return maintain_by_steps(Subject(handle, consumers), STEPS, request)


def maintain_by_steps(
    subject: M, of_table: Mapping[str, Step[M]], request: MaintainRequest
) -> MaintainReport:
    """Maintain ``subject`` as ``maintain`` does, with the steps of its kind of table.

    ``of_table`` has the function of each step, by the name of the step.
    """
    request.check(subject.environment.now_millis())
    if not request.dry_run:
        subject.require_writable()
    table, argument = subject.table, subject.argument
    request.begins(table, HEALTH)
    before = _figures(subject.health(time_travel=True))
    if (lost := subject.lost()) is not None:
        of_table = {**of_table, ORPHANS: refused(of_table[ORPHANS], lost)}
    steps = StepRunner(table, table, subject, _log).run(of_table, request)
    request.begins(table, HEALTH)
    health, stalled = _look_again(subject, steps, request)
    after = Figures() if health is None else _figures(health)
    if request.dry_run:  # Nothing has changed, so the numbers are still those of ``before``.
        after = expected(before, steps)
    reasons = () if health is None or request.dry_run else health.reasons
    note = subject.note(health, steps, dry_run=request.dry_run)
    before, after = with_dead_files(before, after, steps)
    report = MaintainReport(
        table=table,
        location=table,
        dry_run=request.dry_run,
        before=before,
        after=after,
        steps=tuple(steps),
        obstacles=find_obstacles(argument, steps, stalled, reasons),
        note=note,
    )
    log_report(_log, report)
    return report


def _figures(health: IcebergHealthReport) -> Figures:
    """Return the numbers for the maintenance report.

    The number of orphan files is left out, because counting them needs a listing.
    """
    deletes, manifests, storage = health.deletes, health.manifests, health.storage
    return Figures(
        verdict=health.verdict,
        score=health.score,
        files=health.files.files,
        delete_files=(
            deletes.position_delete_files + deletes.deletion_vectors + deletes.equality_delete_files
        ),
        manifests=manifests.data_manifests + manifests.delete_manifests,
        live_bytes=storage.live_bytes,
        snapshots=health.snapshots.count,
        time_travel_files=storage.time_travel_files,
        time_travel_bytes=storage.time_travel_bytes,
    )


def _look_again(
    subject: Maintained, steps: list[StepReport], request: MaintainRequest
) -> tuple[IcebergHealthReport | None, dict[str, Reason]]:
    """Return the health report and the stalled consumers after the steps.

    If they cannot be determined, add a failed step with the error to ``steps``, and return None and
    an empty dict. So the reports of the earlier steps are kept.
    """
    try:
        return subject.health(time_travel=True), subject.stalled(steps, request)
    except LakeError as error:
        steps.append(failed_step(HEALTH, error))
        return None, {}
