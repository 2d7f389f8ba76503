# SPDX-License-Identifier: Apache-2.0
"""The report of a maintenance: numbers before and after, each step, and remaining problems."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

from lakeformat.errors import InvalidRequestError, LakeError, Reported
from lakeformat.tables.health.verdict import Reason, Verdict
from lakeformat.tables.report import Report

__all__ = [
    "COMPACT",
    "COMPACT_DELETES",
    "COMPACT_MANIFESTS",
    "EXPIRE",
    "ORPHANS",
    "PARTITIONS",
    "Figures",
    "MaintainProgress",
    "MaintainReport",
    "StepOutcome",
    "StepReport",
    "warning_of",
]

PARTITIONS: Final = "partitions"
COMPACT: Final = "compact"
COMPACT_DELETES: Final = "compact_deletes"
COMPACT_MANIFESTS: Final = "compact_manifests"
EXPIRE: Final = "expire"
ORPHANS: Final = "orphans"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainProgress:
    """The running step of a maintenance, and the part of its work that is done."""

    table: str
    step: str
    done: int = 0
    total: int | None = None
    """The amount of work of the step; None if it is not known in advance."""
    unit: str = "files"

    steps: ClassVar[tuple[str, ...]] = (PARTITIONS, COMPACT, EXPIRE, ORPHANS)
    """The names of all steps, in their order."""


class StepOutcome(StrEnum):
    """The result of a step in one word."""

    DONE = "done"
    PLANNED = "planned"
    """A dry run found work for the step."""
    NOT_NEEDED = "not needed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport(Report):
    """The report of one step of a maintenance."""

    step: str
    outcome: StepOutcome
    reason: str
    """The work of the step in one sentence, or the reason why it did no work."""
    report: Reported | None = None
    """The report of the step's operation; the last report if the operation ran several times."""
    error: LakeError | None = None
    advice: str | None = None
    """The command for the remaining work; None if none is left, or if the step failed."""
    files_in: int = 0
    files_out: int = 0
    snapshots: int = 0
    changelogs: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    snapshot_ids: tuple[int, ...] = ()
    """The ids of the snapshots that the step published."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON; an error becomes its class and message."""
        values = {name: getattr(self, name) for name in _NUMBERS}
        return {
            "step": self.step,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "advice": self.advice,
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
            **values,
            "snapshot_ids": [*self.snapshot_ids],
            "report": None if self.report is None else self.report.to_dict(),
        }


_NUMBERS = ("files_in", "files_out", "snapshots", "changelogs", "removed_files", "removed_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Numbers about the state of a table. A number is None if it is unknown, or if the format lacks
    it.
    """

    verdict: Verdict | None = None
    score: int | None = None
    files: int | None = None
    """The number of data files of the newest snapshot."""
    level_0_files: int | None = None
    """The number of files in level 0; None for an append table, which has no levels."""
    most_sorted_runs: int | None = None
    live_bytes: int | None = None
    snapshots: int | None = None
    changelogs: int | None = None
    delete_files: int | None = None
    """The number of delete files of the newest snapshot; only for Iceberg tables."""
    manifests: int | None = None
    """The number of manifests of the newest snapshot; only for Iceberg tables."""
    time_travel_files: int | None = None
    time_travel_bytes: int | None = None
    """The bytes of files that only older snapshots, changelogs, tags or branches need."""
    dead_files: int | None = None
    """The number of orphan files that are older than the age limit."""
    dead_bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a dict, ready for JSON."""
        return {**asdict(self), "verdict": None if self.verdict is None else str(self.verdict)}


def warning_of(obstacle: Reason) -> str:
    """Return a remaining problem and its next step as one line for a log."""
    return f"{obstacle.finding}. To do: {obstacle.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainReport(Report):
    """The report of a maintenance of one table, or of its dry run."""

    table: str
    location: str
    dry_run: bool
    before: Figures
    after: Figures
    """The numbers after the last step; in a dry run the expected numbers."""
    steps: tuple[StepReport, ...]
    obstacles: tuple[Reason, ...]
    """The remaining problems of the table, each with its next step."""
    note: str | None = None
    """A sentence about files that are kept only for time travel; None without such files.

    The note needs no action.
    """

    @property
    def failed(self) -> tuple[LakeError, ...]:
        """The errors of failed steps, without ``InvalidRequestError`` and its subclasses."""
        errors = (step.error for step in self.steps if step.error is not None)
        return tuple(each for each in errors if not isinstance(each, InvalidRequestError))

    @property
    def is_healthy(self) -> bool:
        """True if no problem remains."""
        return not self.obstacles

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that the steps published, oldest first."""
        return tuple(number for step in self.steps for number in step.snapshot_ids)

    @property
    def is_idle(self) -> bool:
        """True if no step was needed."""
        return all(step.outcome is StepOutcome.NOT_NEEDED for step in self.steps)

    @property
    def summary(self) -> str:
        """The verdict before and after, and the work of each step, in one sentence for the log."""
        worked = [
            step.reason
            for step in self.steps
            if step.outcome in (StepOutcome.DONE, StepOutcome.PLANNED)
        ]
        return "; ".join([self._verdicts(), *(worked or [self._idle()])])

    @property
    def reason(self) -> str:
        """``summary``, then the first remaining problem and the number of further problems."""
        if not self.obstacles:
            return self.summary
        more = f" and {len(self.obstacles) - 1} more" if len(self.obstacles) > 1 else ""
        return f"{self.summary}; obstacle: {self.obstacles[0].finding}{more}"

    def _idle(self) -> str:
        failed = any(step.error is not None for step in self.steps)
        return "no step did any work" if failed else "no step was needed"

    def _verdicts(self) -> str:
        before, after = self.before.verdict, self.after.verdict
        if self.dry_run or after is None or before == after:
            return f"{before}"
        return f"{before} before, {after} now"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        return {
            "table": self.table,
            "location": self.location,
            "dry_run": self.dry_run,
            "reason": self.reason,
            "is_healthy": self.is_healthy,
            "note": self.note,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "obstacles": [{**asdict(each), "warning": warning_of(each)} for each in self.obstacles],
            **{name: sum(getattr(each, name) for each in self.steps) for name in _NUMBERS},
            "snapshot_ids": [*self.snapshot_ids],
            "steps": [step.to_dict() for step in self.steps],
        }
