# SPDX-License-Identifier: Apache-2.0
"""Deletes old snapshots and the files that only they need."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.expire_snapshots import ExpireSnapshotsRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat.tables.expire_report import AnyExpireReport

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "expire_snapshots",
    ExpireSnapshotsRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "older_than": "1 d", "dry_run": True},
    operation="expire_snapshots",
)


def run(
    request: ExpireSnapshotsRequest | JsonObject, spark: SparkSession | None = None
) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: ExpireSnapshotsRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    report: AnyExpireReport = table.expire_snapshots(
        retain_max=wanted.retain_max,
        retain_min=wanted.retain_min,
        older_than=wanted.older_than,
        limit=wanted.limit,
        dry_run=wanted.dry_run,
    )
    return Outcome(
        reason="; ".join([*report.lines, *report.advice(wanted.table)]),
        report=report.to_dict(),
        skipped=not report.has_work,
        newest_before=newest_snapshot(table),
    )


if __name__ == "__main__":
    sys.exit(main())
