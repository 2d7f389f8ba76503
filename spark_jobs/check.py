# SPDX-License-Identifier: Apache-2.0
"""Checks staged rows before they are published, or the published rows of a table."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from lakeformat.errors import LakeError
from spark_jobs.job_requests.check import CheckRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, attach_outcome, wanted_table
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import CheckReport, Table

__all__ = ["JOB", "FailedChecksError", "main", "run"]

_log = logging.getLogger(__name__)

JOB = Job(
    "check",
    CheckRequest,
    {
        "warehouse": "warehouse",
        "table": "shop.orders",
        "min_rows": 1,
        "not_null": ["id"],
        "unique": ["id"],
        "warn_only": ["unique"],
    },
    operation="check",
)

_AGAIN = (
    "Nothing was published: stage the corrected rows (in Airflow: clear the task that staged the "
    "rows)"
)
_KEPT = (
    "The staged files are kept; with discard_failed=True a failed check deletes them. "
    "remove_orphans with staged_older_than and dry_run=False deletes old ones"
)
_DISCARDED = "The staged files were deleted"


class FailedChecksError(LakeError):
    """The error of failed checks. The message lists each failed check with examples and advice;
    ``result`` has the result of the job.
    """


def run(request: CheckRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``FailedChecksError`` if a check fails.

    A check that only warns does not fail. Raise ``InvalidRequestError`` for a wrong request.
    With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _act(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: CheckRequest, spark: SparkSession | None) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    with executor_of(wanted.engine, spark, f"check {wanted.table}", unit="splits") as executor:
        report = table.check(
            staged=wanted.staged,
            replaces=wanted.replaces,
            where=wanted.where,
            executor=executor,
            **wanted.given_checks(),
        )
    for check in report.warned:
        _log.warning("%s: %s", wanted.table, check)
    outcome = Outcome(
        reason=report.reason,
        report=report.to_dict(),
        newest_before=report.snapshot_id,
        more={} if wanted.staged is None else {"staged": list(report.staged)},
    )
    if report.failed:
        error = FailedChecksError(_failure(wanted, report, table))
        attach_outcome(error, outcome)
        raise error
    return outcome


def _failure(wanted: CheckRequest, report: CheckReport, table: Table) -> str:
    """Return the message of failed checks.

    With ``discard_failed`` also discard the staged results.
    """
    found = "; ".join(map(str, report.failed))
    words = f"{wanted.table}: {report.reason}. {found}"
    if wanted.staged is None:
        return words
    if not wanted.discard_failed:
        return f"{words}. {_AGAIN}. {_KEPT}"
    discarded = table.staged.discard(wanted.staged, dry_run=False)
    kept = [each for each in discarded if each.outcome != "discarded"]
    if kept:
        return f"{words}. {kept[0].staged} was not discarded: {kept[0].reason}"
    return f"{words}. {_AGAIN}. {_DISCARDED}"


if __name__ == "__main__":
    sys.exit(main())
