# SPDX-License-Identifier: Apache-2.0
"""Publishes staged results of a table in one snapshot; a retry does not publish them again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lakeformat.errors import BucketsChangedError
from spark_jobs.job_requests.commit import StagedCommitRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "commit",
    StagedCommitRequest,
    {
        "warehouse": "warehouse",
        "table": "shop.orders",
        "staged": ["warehouse/shop.db/orders/staged/staged-0a1b"],
    },
    operation="staged",
)


def run(request: StagedCommitRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: StagedCommitRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    before = newest_snapshot(table)
    try:
        report = table.staged.publish(wanted.staged, commit=wanted.commit_id())
    except BucketsChangedError as reason:
        reason.is_final = True  # a retry would publish the same files
        raise
    return Outcome.of_commit(table, report, before)


if __name__ == "__main__":
    sys.exit(main())
