# SPDX-License-Identifier: Apache-2.0
"""Publishes statistics of a table for query planners."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.analyze import AnalyzeRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "analyze",
    AnalyzeRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "columns": "all"},
    operation="analyze",
)


def run(request: AnalyzeRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: AnalyzeRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    before = newest_snapshot(table)
    report = table.analyze(wanted.columns, commit=wanted.commit_id(), dry_run=wanted.dry_run)
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=report.statistics is None and not report.replayed,
        snapshot_ids=() if report.snapshot_id is None else (report.snapshot_id,),
        newest_before=before,
        replayed=report.replayed,
    )


if __name__ == "__main__":
    sys.exit(main())
