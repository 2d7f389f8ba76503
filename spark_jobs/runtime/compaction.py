# SPDX-License-Identifier: Apache-2.0
"""The shared part of jobs that compact: the executor, the compaction or its plan, and warnings."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakeformat.errors import LakeError
from lakeformat.types.count_text import counted
from spark_jobs.runtime.job import (
    JobResult,
    Outcome,
    attach_outcome,
    newest_snapshot,
    snapshot_before,
)
from spark_jobs.runtime.progress import report_compaction
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import CompactReport, Table
    from lakeformat.executor import Executor
    from spark_jobs.job_requests.common import PartitionsRequest
    from spark_jobs.job_requests.compact import ChangelogRequest, CompactionRequest, CompactRequest

__all__ = ["compact_table", "compacting_executor", "warning_of_empty_choice", "warnings_of"]

_log = logging.getLogger(__name__)


@contextmanager
def compacting_executor(
    wanted: CompactionRequest, spark: SparkSession | None, subject: str
) -> Iterator[str | Executor | None]:
    """Yield the executor of a request: ``threads``, ``serial``, an executor on Spark, or None for
    the default.

    Spark starts only for engine ``spark``, and not in a dry run. ``subject`` is the table or
    database; the name of the Spark application includes it.
    """
    if wanted.engine == "python" or wanted.dry_run:
        yield wanted.executor
        return
    with executor_of(wanted.engine, spark, f"compact {subject}") as executor:
        yield executor


def compact_table(
    table: Table,
    wanted: CompactRequest | ChangelogRequest,
    executor: str | Executor | None,
    *,
    strategy: str,
    buckets: Sequence[int] | None = None,
    order_by: Sequence[str] | None = None,
    order_strategy: str | None = None,
    **more: Any,
) -> Outcome:
    """Compact a table, or only plan the compaction in a dry run, and return the outcome.

    ``more`` are further arguments of the table's method. If a ``LakeError`` has a report of
    finished buckets, attach the outcome of these buckets to the error. Raise
    ``CommitConflictError`` if conflicts have stopped all work.
    """
    before = newest_snapshot(table)
    if wanted.dry_run:
        plan = table.plan_compaction(
            strategy=strategy,
            where=wanted.where,
            partitions=wanted.partitions,
            idle=wanted.idle,
            buckets=buckets,
            order_by=order_by,
            order_strategy=order_strategy,
            **more,
        )
        if plan.other_compactor is not None:
            _log.warning("%s", plan.other_compactor.warning)
        units = ("bucket or group of files", "buckets or groups of files")
        planned = Outcome(
            reason=f"{counted(len(plan.units), *units)} would be compacted",
            report=plan.to_dict(),
            skipped=not plan.units,
            newest_before=before,
        )
        return warning_of_empty_choice(table, wanted, planned)
    try:
        report = table.compact(
            strategy=strategy,
            where=wanted.where,
            partitions=wanted.partitions,
            idle=wanted.idle,
            buckets=buckets,
            order_by=order_by,
            order_strategy=order_strategy,
            **more,
            commit=wanted.commit_id(),
            executor=executor,
            on_progress=report_compaction,
        )
    except LakeError as error:
        if error.report is not None:
            done: Any = error.report
            attach_outcome(error, _outcome_of(table, done, before))
        raise
    outcome = warning_of_empty_choice(table, wanted, _outcome_of(table, report, before))
    if report.unfinished is not None and not outcome.snapshot_ids:
        from lakeformat import CommitConflictError

        raise CommitConflictError(f"{table.location}: {report.unfinished}")
    return outcome


def warning_of_empty_choice(table: Table, wanted: PartitionsRequest, outcome: Outcome) -> Outcome:
    """Return ``outcome``, with a warning if it is skipped and no chosen partition has rows."""
    if not outcome.skipped:
        return outcome
    why = table.explain_empty_choice(where=wanted.where, partitions=wanted.partitions)
    if why is None:
        return outcome
    warning = f"{wanted.table}: nothing was done, because {why}"
    _log.warning("%s", warning)
    return replace(outcome, report={**outcome.report, "warning": warning})


def warnings_of(result: JobResult) -> list[str]:
    """Return the warnings in a job's result.

    They are about other programs that compact the same table, obstacles that remain after
    maintenance, checks that only warn, partitions that never expire, and chosen partitions without
    rows.
    """
    report = result.get("report") or {}
    reports = [report, *(each["report"] or {} for each in report.get("tables", ()))]
    others = [each.get("other_compactor") for each in reports]
    warnings = [other["warning"] for other in others if other is not None]
    for each in reports:
        warnings += [f"{each['table']}: {found['warning']}" for found in each.get("obstacles", ())]
        warnings += [
            f"{result['table']}: {check['name']}: {check['finding']}: {check['advice']}"
            for check in each.get("checks", ())
            if check["outcome"] == "warned"
        ]
    return warnings + [each["warning"] for each in reports if each.get("warning")]


def _outcome_of(table: Table, report: CompactReport, before: int | None) -> Outcome:
    published = (*report.earlier_snapshot_ids, *report.snapshot_ids)
    if published and not table.numbers_snapshots:
        before = snapshot_before(table, published[0])
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not published,
        snapshot_ids=published,
        newest_before=before,
        numbered=table.numbers_snapshots,
        replayed=bool(published) and not report.snapshot_ids,
    )
