# SPDX-License-Identifier: Apache-2.0
"""Deletes the rows of old partitions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.expire_partitions import ExpirePartitionsRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "expire_partitions",
    ExpirePartitionsRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "expiration_time": "90 d", "dry_run": True},
    operation="expire_partitions",
)


def run(
    request: ExpirePartitionsRequest | JsonObject, spark: SparkSession | None = None
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


def _act(wanted: ExpirePartitionsRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    before = newest_snapshot(table)
    report = table.expire_partitions(
        expiration_time=wanted.expiration_time,
        strategy=wanted.strategy,
        timestamp_pattern=wanted.timestamp_pattern,
        timestamp_formatter=wanted.timestamp_formatter,
        max_num=wanted.max_num,
        batch_size=wanted.batch_size,
        dry_run=wanted.dry_run,
    )
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not report.expired,
        snapshot_ids=report.snapshot_ids,
        newest_before=before,
    )


if __name__ == "__main__":
    sys.exit(main())
