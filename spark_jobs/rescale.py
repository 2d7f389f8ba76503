# SPDX-License-Identifier: Apache-2.0
"""Changes the number of buckets of partitions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.request import JsonObject
from spark_jobs.job_requests.rescale import RescaleRequest
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.compaction import warning_of_empty_choice
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "rescale",
    RescaleRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "bucket": 2, "dry_run": True},
    operation="rescale",
)


def run(request: RescaleRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _act(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: RescaleRequest, spark: SparkSession | None) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    before = newest_snapshot(table)
    engine = "python" if wanted.dry_run else wanted.engine
    with executor_of(engine, spark, f"rescale {wanted.table}", unit="parts") as executor:
        report = table.rescale(
            bucket=wanted.bucket,
            where=wanted.where,
            partitions=wanted.partitions,
            dry_run=wanted.dry_run,
            executor=executor,
        )
    outcome = Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=all(each.outcome == "not due" for each in report.partitions),
        snapshot_ids=report.snapshot_ids,
        newest_before=before,
    )
    return warning_of_empty_choice(table, wanted, outcome)


if __name__ == "__main__":
    sys.exit(main())
