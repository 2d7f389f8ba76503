"""What the jobs that compact share: how it is run, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lakeformat.count_text import counted
from spark_jobs.job import Outcome, newest_snapshot
from spark_jobs.progress import tell_compaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import CommitId, Table

__all__ = ["How", "compact_table", "how_of"]


class _Compacting(Protocol):
    """What the requests of these jobs have in common."""

    @property
    def engine(self) -> str:
        """Where units run."""

    @property
    def executor(self) -> str | None:
        """How many at a time."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be changed."""


@dataclass(frozen=True, slots=True)
class How:
    """Where units are compacted, and whether they are."""

    executor: str | None
    dry_run: bool
    commit: CommitId | None = None


def how_of(wanted: _Compacting, spark: SparkSession | None) -> How:
    """Read it from a request."""
    if wanted.engine == "spark":
        from lakeformat import UnsupportedError

        raise UnsupportedError(
            "key 'engine': this version compacts in the driver alone; use engine 'python'"
        )
    return How(wanted.executor, wanted.dry_run)


def compact_table(table: Table, which: Mapping[str, Any], how: How) -> Outcome:
    """Compact, or say what would be."""
    before = newest_snapshot(table)
    if how.dry_run:
        plan = table.plan_compaction(**which)
        return Outcome(
            reason=f"{counted(len(plan.units), 'unit')} would be compacted",
            report=plan.to_dict(),
            skipped=not plan.units,
            newest_before=before,
        )
    report = table.compact(**which, executor=how.executor, tell=tell_compaction)
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not report.snapshot_ids,
        snapshot_ids=report.snapshot_ids,
        newest_before=before,
    )
