# SPDX-License-Identifier: Apache-2.0
"""Reports the step of a maintenance that removes orphan files."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.maintain.maintain_report import ORPHANS, StepOutcome, StepReport
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import Step, outcome_of
from lakeformat.tables.orphan_report import OrphanReport
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["of_orphans", "refused"]

T = TypeVar("T")


def refused(step: Step[T], reason: str) -> Step[T]:
    """Return a step that finds orphan files as ``step`` does, but deletes none.

    If there are any, the returned step raises ``InvalidRequestError`` with ``reason``, except in a
    dry run. Use that step for a table whose newest metadata may have been lost before the
    maintenance. ``step`` itself cannot detect this loss if an earlier step of the maintenance has
    made a commit.
    """

    def find(subject: T, request: MaintainRequest) -> StepReport:
        found = step(subject, replace(request, dry_run=True))
        if found.outcome is StepOutcome.PLANNED and not request.dry_run:
            raise InvalidRequestError(reason)
        return found

    return find


def of_orphans(
    report: OrphanReport, request: MaintainRequest, table: str, *, usual_age: str
) -> StepReport:
    """Return the report of the step that removes orphan files.

    ``table`` is the name of the table in commands. ``usual_age`` is the default age limit as text.
    """
    is_left = bool(report.failures) or report.objection is not None
    return StepReport(
        step=ORPHANS,
        outcome=outcome_of(bool(report.orphan_files), request),
        reason=_reason(report, table, usual_age),
        report=report,
        advice=f"lake orphans {table}" if is_left else None,
        removed_files=report.removed_files,
        removed_bytes=report.removed_bytes,
    )


def _reason(report: OrphanReport, table: str, usual_age: str) -> str:
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
        parts.append(_young_files(report, table, usual_age))
    return ", ".join(parts)


def _young_files(report: OrphanReport, table: str, usual_age: str) -> str:
    """Return a clause about the orphan files that are too young to be removed.

    If the age limit depends on the time of the newest commit, the clause ends with the command that
    removes the files.
    """
    young = counted(report.young_files, "file")
    if report.kept_by_commit is None:
        return f"kept {young} younger than {usual_age}"
    they, them = ("it", "it") if report.young_files == 1 else ("they", "them")
    return (
        f"kept {young} that no snapshot needs: {they} changed less than a day before the newest "
        f"commit, snapshot {report.kept_by_commit}, or after it. A write that has not committed "
        f"yet may need {them}. If no write is running: "
        f"lake orphans {table} --older-than '1 d' --remove"
    )
