# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a maintenance. The error of one step does not stop the steps after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from logging import Logger
from typing import Generic, TypeAlias, TypeVar

from lakeformat.errors import LakeError
from lakeformat.tables.compact_summary import CompactSummary
from lakeformat.tables.maintain.maintain_report import (
    COMPACT,
    PARTITIONS,
    MaintainReport,
    StepOutcome,
    StepReport,
    warning_of,
)
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.table_by_table import as_defect
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = [
    "HEALTH",
    "Step",
    "StepRunner",
    "failed_step",
    "log_report",
    "not_needed",
    "of_compaction",
    "outcome_of",
]

HEALTH = "health"
_COMMITS = (PARTITIONS, COMPACT)

T = TypeVar("T")
Step: TypeAlias = Callable[[T, MaintainRequest], StepReport]


@dataclass(frozen=True, slots=True)
class StepRunner(Generic[T]):
    """Runs the steps of a maintenance of one table."""

    table: str
    """The name of the table for progress reports and logs."""
    uri: str
    subject: T
    """The argument of each step, such as the handle of the table."""
    log: Logger

    def run(self, steps: Mapping[str, Step[T]], request: MaintainRequest) -> list[StepReport]:
        """Run the steps in their order, and return the report of each."""
        done: list[StepReport] = []
        for name, step in steps.items():
            planned = any(
                each.outcome is StepOutcome.PLANNED for each in done if each.step in _COMMITS
            )
            done.append(self._run(replace(request, commit_comes_first=planned), name, step))
        return done

    def _run(self, request: MaintainRequest, name: str, step: Step[T]) -> StepReport:
        """Run one step and return its report.

        If the step fails, the report has the error, so that the next steps can run.
        """
        request.begins(self.table, name)
        try:
            report = step(self.subject, request)
        except LakeError as error:
            report = failed_step(name, error)
        except Exception as error:
            self.log.exception(
                "step %s of the maintenance of %s failed because of a defect of this library",
                name,
                self.uri,
            )
            report = failed_step(name, as_defect(error))
        said = report.reason if report.error is None else "failed; a warning below has the reason"
        self.log.info("maintenance of %s: %s: %s", self.table, name, said)
        return report


def failed_step(name: str, error: LakeError) -> StepReport:
    """Return the report of a failed step.

    The report of a failed compaction has the work that was completed before the failure.
    """
    said = f"{type(error).__name__}: {error}"
    failed = StepReport(step=name, outcome=StepOutcome.FAILED, reason=said, error=error)
    if name == COMPACT and isinstance(error.report, CompactSummary):
        done = of_compaction(error.report, "")
        return replace(done, outcome=failed.outcome, reason=failed.reason, error=error)
    return failed


def of_compaction(report: CompactSummary, idle: str) -> StepReport:
    """Return the report of the compaction step.

    If the compaction published nothing, the step was not needed, and ``idle`` is the reason.
    """
    if not report.snapshot_ids:
        return not_needed(COMPACT, idle)
    return StepReport(
        step=COMPACT,
        outcome=StepOutcome.DONE,
        reason=(
            f"compacted {counted(report.files_in, 'file')} of {size(report.bytes_in)} into "
            f"{counted(report.files_out, 'file')} of {size(report.bytes_out)}"
        ),
        report=report,
        files_in=report.files_in,
        files_out=report.files_out,
        snapshot_ids=tuple(sorted(report.snapshot_ids)),
    )


def not_needed(step: str, reason: str) -> StepReport:
    """Return the report of a step that had no work, for the given reason."""
    return StepReport(step=step, outcome=StepOutcome.NOT_NEEDED, reason=reason)


def outcome_of(has_work: bool, request: MaintainRequest) -> StepOutcome:
    """Return ``NOT_NEEDED`` for a step without work; else ``PLANNED`` in a dry run, or ``DONE``."""
    if not has_work:
        return StepOutcome.NOT_NEEDED
    return StepOutcome.PLANNED if request.dry_run else StepOutcome.DONE


def log_report(log: Logger, report: MaintainReport) -> None:
    """Log the summary of a maintenance, and a warning for each remaining problem."""
    log.info("maintenance of %s: %s", report.table, report.summary)
    if report.note is not None:
        log.info("maintenance of %s: %s", report.table, report.note)
    for each in report.obstacles:
        log.warning("%s: %s", report.table, warning_of(each))
