"""The common part of jobs that compact: how to run a compaction, and its progress."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lakeformat.errors import LakeError
from lakeformat.types.count_text import counted
from spark_jobs.runtime.job import Outcome, newest_snapshot, tell_what_was_done
from spark_jobs.runtime.progress import tell_compaction
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import CommitId, CompactReport, Table
    from lakeformat.executor import Executor

__all__ = ["How", "compact_table", "how_of", "warnings_of"]

_log = logging.getLogger(__name__)


class _Compacting(Protocol):
    """The keys that the requests of these jobs share."""

    @property
    def engine(self) -> str:
        """The engine that runs the units."""

    @property
    def executor(self) -> str | None:
        """``threads`` or ``serial``; None for the default."""

    @property
    def dry_run(self) -> bool:
        """True if nothing may change."""

    def commit_id(self) -> CommitId | None:
        """Return the identity of the compaction."""


@dataclass(frozen=True, slots=True)
class How:
    """The executor, the dry run and the identity of a compaction."""

    executor: str | Executor | None
    dry_run: bool
    commit: CommitId | None


@contextmanager
def how_of(wanted: _Compacting, spark: SparkSession | None, subject: str) -> Iterator[How]:
    """Read these from a request; Spark is only started if it has something to do."""
    if wanted.engine == "python" or wanted.dry_run:
        yield How(wanted.executor, wanted.dry_run, wanted.commit_id())
        return
    with executor_of(wanted.engine, spark, f"compact {subject}") as executor:
        yield How(executor, wanted.dry_run, wanted.commit_id())


def compact_table(table: Table, which: Mapping[str, Any], how: How) -> Outcome:
    """Compact a table, or return the plan in a dry run."""
    before = newest_snapshot(table)
    if how.dry_run:
        plan = table.plan_compaction(**which)
        if plan.other_compactor is not None:
            _log.warning("%s", plan.other_compactor.warning)
        return Outcome(
            reason=f"{counted(len(plan.units), 'unit')} would be compacted",
            report=plan.to_dict(),
            skipped=not plan.units,
            newest_before=before,
        )
    try:
        report = table.compact(
            **which, commit=how.commit, executor=how.executor, on_progress=tell_compaction
        )
    except LakeError as error:
        if error.report is not None:
            done: Any = error.report
            tell_what_was_done(error, _outcome_of(done, before))
        raise
    outcome = _outcome_of(report, before)
    if report.unfinished is not None and not outcome.snapshot_ids:
        from lakeformat import CommitConflictError

        raise CommitConflictError(f"{table.location}: {report.unfinished}")
    return outcome


def warnings_of(result: Mapping[str, Any]) -> list[str]:
    """Return the warnings in a job's result: other programs that compact the same tables, and the
    obstacles that a maintenance found.
    """
    report = result.get("report") or {}
    reports = [report, *(each["report"] or {} for each in report.get("tables", ()))]
    others = [each.get("other_compactor") for each in reports]
    warnings = [other["warning"] for other in others if other is not None]
    for each in reports:
        warnings += [f"{each['table']}: {found['warning']}" for found in each.get("obstacles", ())]
    return warnings


def _outcome_of(report: CompactReport, before: int | None) -> Outcome:
    published = (*report.earlier_snapshot_ids, *report.snapshot_ids)
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not published,
        snapshot_ids=published,
        newest_before=before,
        replayed=bool(published) and not report.snapshot_ids,
    )
