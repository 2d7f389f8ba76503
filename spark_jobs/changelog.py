# SPDX-License-Identifier: Apache-2.0
"""Compacts a table so that its changelog gets the missing changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.compact import ChangelogRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.compaction import compact_table, compacting_executor
from spark_jobs.runtime.job import Job, JobResult, Outcome, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "changelog",
    ChangelogRequest,
    {"warehouse": "warehouse", "table": "shop.orders"},
    operation="changelog",
)


def run(request: ChangelogRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _changelog(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _changelog(wanted: ChangelogRequest, spark: SparkSession | None) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    strategy = table.options.strategy_of_changelog()
    with compacting_executor(wanted, spark, wanted.table) as executor:
        return compact_table(table, wanted, executor, strategy=strategy)


if __name__ == "__main__":
    sys.exit(main())
