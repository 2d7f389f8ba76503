# SPDX-License-Identifier: Apache-2.0
"""Deletes the rows of a table that meet a condition, once per commit identity."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.request import JsonObject
from spark_jobs.job_requests.row_changes import DeleteRequest
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome
from spark_jobs.runtime.row_changes import change_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "delete",
    DeleteRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "where": "id = 7", "dry_run": True},
    operation="delete",
)


def run(request: DeleteRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: DeleteRequest) -> Outcome:
    return change_rows(
        wanted, JOB.operation, lambda table, **how: table.delete(wanted.where, **how)
    )


if __name__ == "__main__":
    sys.exit(main())
