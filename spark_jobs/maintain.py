# SPDX-License-Identifier: Apache-2.0
"""Runs all maintenance of tables: expires partitions, compacts, expires snapshots, deletes orphan
files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakeformat.errors import CommitConflictError, InvalidRequestError, LakeError
from lakeformat.tables.table_by_table import skipped_text
from spark_jobs.health import AS_BAD, UnhealthyTableError
from spark_jobs.job_requests.maintain import MaintainRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import (
    Job,
    JobResult,
    Outcome,
    PartlyFailedError,
    attach_outcome,
    newest_snapshot,
    no_matching_table,
    open_warehouse,
)
from spark_jobs.runtime.progress import report_progress
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import MaintainProgress, MaintainReport, Table
    from lakeformat.executor import Executor
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "maintain",
    MaintainRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "expire_consumers": "7 d"},
    operation="maintain",
)


def run(request: MaintainRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``PartlyFailedError`` if a step or a table fails.

    Raise ``InvalidRequestError`` for a wrong request, and if every table refuses it. Raise
    ``UnhealthyTableError`` if the verdict on a table is ``fail_when`` or worse. With engine
    ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _act(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: MaintainRequest, spark: SparkSession | None) -> Outcome:
    table = None
    if wanted.table is not None:
        table = open_warehouse(wanted).table(wanted.table)
        table.require(JOB.operation)
    engine = "python" if wanted.dry_run else wanted.engine
    with executor_of(engine, spark, f"maintain {wanted.table or wanted.database}") as executor:
        if wanted.table is not None and table is not None:
            return _of_table(wanted, wanted.table, table, executor)
        return _of_tables(wanted, executor)


def _of_table(
    wanted: MaintainRequest, name: str, table: Table, executor: Executor | None
) -> Outcome:
    before = newest_snapshot(table)
    report = table.maintain(
        dry_run=wanted.dry_run,
        expire_consumers=wanted.expire_consumers,
        executor=executor,
        on_progress=_heard,
    )
    outcome = Outcome(
        reason=report.reason,
        report=_plain(report),
        skipped=report.is_idle,
        snapshot_ids=report.snapshot_ids,
        newest_before=before,
        numbered=table.numbers_snapshots,
    )
    if report.failed:
        raise _partly(f"{name}: {_failures(report)}", outcome, report.failed)
    _judge(wanted, [(name, report)], outcome)
    return outcome


def _of_tables(wanted: MaintainRequest, executor: Executor | None) -> Outcome:
    from lakeformat.catalog.compact_tables import matching_tables
    from lakeformat.catalog.maintain_tables import maintain_tables

    catalog: Any = open_warehouse(wanted)
    names = matching_tables(
        catalog,
        databases=wanted.database or ".*",
        including=wanted.including,
        excluding=wanted.excluding,
    )
    if not names:
        raise no_matching_table(wanted.database, wanted.including, wanted.excluding)
    outcomes = []
    maintained = maintain_tables(
        catalog,
        names,
        dry_run=wanted.dry_run,
        expire_consumers=wanted.expire_consumers,
        executor=executor,
        on_progress=_heard,
    )
    for number, each in enumerate(maintained, 1):
        report_progress(number, len(names), "tables", table=each.table)
        outcomes.append(each)
    reports = [(each.table, each.report) for each in outcomes if each.report is not None]
    outcome = _summed(outcomes, dry_run=wanted.dry_run)
    errors = [
        *((each.table, each.error) for each in outcomes if each.error is not None),
        *((name, error) for name, report in reports for error in report.failed),
    ]
    if errors:
        name, first = errors[0]
        failed = len({table for table, _ in errors})
        message = f"{failed} of {len(names)} tables failed; the first is {name}: {first}"
        if all(isinstance(error, InvalidRequestError) for _, error in errors) and not reports:
            raise InvalidRequestError(message)
        raise _partly(message, outcome, [error for _, error in errors])
    _judge(wanted, reports, outcome)
    return outcome


def _summed(outcomes: Sequence[TableOutcome[MaintainReport]], *, dry_run: bool) -> Outcome:
    reports = [each.report for each in outcomes if each.report is not None]
    worked = sum(not report.is_idle for report in reports)
    held = sum(bool(report.obstacles) for report in reports)
    failed = sum(
        each.error is not None or (each.report is not None and bool(each.report.failed))
        for each in outcomes
    )
    parts = [
        f"{worked} of {len(outcomes)} tables {'would be maintained' if dry_run else 'maintained'}",
        f"{failed} failed" if failed else "",
        f"{held} with obstacles" if held else "",
        skipped_text(outcomes),
    ]
    return Outcome(
        reason=", ".join(filter(None, parts)),
        report={"tables": [_small(each) for each in outcomes]},
        skipped=not worked and not failed,
    )


def _small(outcome: TableOutcome[MaintainReport]) -> dict[str, Any]:
    plain = outcome.to_dict()
    return plain if outcome.report is None else {**plain, "report": _plain(outcome.report)}


def _plain(report: MaintainReport) -> dict[str, Any]:
    """Return the report without the reports of its steps, which list single buckets and files."""
    plain = report.to_dict()
    for step in plain["steps"]:
        del step["report"]
    return plain


def _judge(
    wanted: MaintainRequest, reports: Sequence[tuple[str, MaintainReport]], outcome: Outcome
) -> None:
    """Raise ``UnhealthyTableError``, with the ``outcome`` of the job, if the verdict on a table is
    ``fail_when`` or worse.
    """
    if wanted.fail_when is None:
        return
    bad = [(n, r) for n, r in reports if r.after.verdict in AS_BAD[wanted.fail_when]]
    if bad:
        reasons = "; ".join(f"{name} is {report.reason}" for name, report in bad)
        error = UnhealthyTableError(reasons)
        attach_outcome(error, outcome)
        raise error


def _partly(message: str, outcome: Outcome, errors: Sequence[LakeError]) -> PartlyFailedError:
    is_conflict = all(isinstance(each, CommitConflictError) for each in errors)
    return PartlyFailedError(message, outcome, is_conflict=is_conflict)


def _failures(report: MaintainReport) -> str:
    return "; ".join(f"{step.step}: {step.reason}" for step in report.steps if step.error)


def _heard(progress: MaintainProgress) -> None:
    """Report each step when it begins, and the progress of a compaction in buckets or groups of
    files.
    """
    names, more = progress.steps, {"table": progress.table, "step": progress.step}
    if progress.total is not None:
        report_progress(progress.done, progress.total, progress.unit, **more)
    elif not progress.done and progress.step in names:
        report_progress(names.index(progress.step), len(names), "steps", **more)


if __name__ == "__main__":
    sys.exit(main())
