# SPDX-License-Identifier: Apache-2.0
"""Compacts the tables of databases, one after the other; a failed table does not stop the next."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.tables.table_by_table import skipped_text
from spark_jobs.job_requests.compact import CompactDatabaseRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.compaction import compacting_executor
from spark_jobs.runtime.job import (
    Job,
    JobResult,
    Outcome,
    PartlyFailedError,
    no_matching_table,
    open_warehouse,
)
from spark_jobs.runtime.progress import report_compaction, report_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat.executor import Executor
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = ["JOB", "main", "run"]

_log = logging.getLogger(__name__)

JOB = Job(
    "compact_database",
    CompactDatabaseRequest,
    {"warehouse": "warehouse", "database": "shop", "strategy": "minor"},
    operation="compact",
)


def run(
    request: CompactDatabaseRequest | JsonObject, spark: SparkSession | None = None
) -> JobResult:
    """Run the job and return its result; raise ``PartlyFailedError`` if a table fails.

    Raise ``InvalidRequestError`` for a wrong request, and if every table refuses it. With
    engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _compact_all(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _compact_all(wanted: CompactDatabaseRequest, spark: SparkSession | None) -> Outcome:
    from lakeformat.catalog.compact_tables import matching_tables

    catalog: Any = open_warehouse(wanted)
    names = matching_tables(
        catalog,
        databases=wanted.database,
        including=wanted.including,
        excluding=wanted.excluding,
    )
    if not names:
        raise no_matching_table(wanted.database, wanted.including, wanted.excluding)
    with compacting_executor(wanted, spark, wanted.database) as executor:
        outcomes = [*_outcomes(catalog, names, wanted, executor)]
        return _outcome_of(outcomes, dry_run=wanted.dry_run)


def _outcomes(
    catalog: Any, names: list[str], wanted: CompactDatabaseRequest, executor: str | Executor | None
) -> Iterator[TableOutcome[Any]]:
    from lakeformat.catalog.compact_tables import compact_tables, plan_tables

    done: Iterator[TableOutcome[Any]] = (
        plan_tables(catalog, names, strategy=wanted.strategy, where=wanted.where, idle=wanted.idle)
        if wanted.dry_run
        else compact_tables(
            catalog,
            names,
            strategy=wanted.strategy,
            where=wanted.where,
            idle=wanted.idle,
            commit=wanted.commit_id(),
            executor=executor,
            on_progress=report_compaction,
        )
    )
    for number, outcome in enumerate(done, 1):
        if wanted.dry_run and outcome.report is not None and outcome.report.other_compactor:
            _log.warning("%s", outcome.report.other_compactor.warning)
        report_progress(number, len(names), "tables", table=outcome.table)
        yield outcome


def _is_due(outcome: TableOutcome[Any], *, is_plan: bool) -> bool:
    """Return True if a table was compacted or, in a dry run, would be compacted."""
    report = outcome.report
    if report is None:
        return False
    return bool(report.units if is_plan else report.snapshot_ids)


def _was_due(outcome: TableOutcome[Any]) -> bool:
    """Return True if a table was compacted by an earlier attempt, and not by this one."""
    report = outcome.report
    return report is not None and bool(report.earlier_snapshot_ids) and not report.snapshot_ids


def _outcome_of(outcomes: list[TableOutcome[Any]], *, dry_run: bool) -> Outcome:
    failed = [each for each in outcomes if each.error is not None]
    due = [each for each in outcomes if _is_due(each, is_plan=dry_run)]
    earlier = [] if dry_run else [each for each in outcomes if _was_due(each)]
    skipped = skipped_text(outcomes)
    outcome = Outcome(
        reason=f"{len(due)} of {len(outcomes)} tables "
        + ("would be compacted" if dry_run else "compacted")
        + (f", {len(earlier)} already compacted by an earlier attempt" if earlier else "")
        + (f", {len(failed)} failed" if failed else "")
        + (f", {skipped}" if skipped else ""),
        report={"tables": [_small(each) for each in outcomes]},
        skipped=not due and not earlier and not failed,
    )
    if failed:
        first = f"{failed[0].table}: {failed[0].error}"
        message = f"{len(failed)} of {len(outcomes)} tables failed; the first is {first}"
        # If every table refuses the request, the request is wrong and a retry cannot help.
        tried = [each for each in outcomes if each.skipped is None]
        if all(isinstance(each.error, InvalidRequestError) for each in tried):
            raise InvalidRequestError(message)
        raise PartlyFailedError(
            message,
            outcome,
            is_conflict=all(isinstance(each.error, CommitConflictError) for each in failed),
        )
    return outcome


def _small(outcome: TableOutcome[Any]) -> dict[str, Any]:
    plain = outcome.to_dict()
    if plain["report"] is not None:
        plain["report"].pop("buckets", None)
        plain["report"].pop("groups", None)
    return plain


if __name__ == "__main__":
    sys.exit(main())
