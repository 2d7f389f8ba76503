# SPDX-License-Identifier: Apache-2.0
"""Merges the files of a table into fewer and larger ones; its rows do not change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.compact import CompactRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.compaction import compact_table, compacting_executor
from spark_jobs.runtime.job import Job, JobResult, Outcome, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "compact",
    CompactRequest,
    {"warehouse": "warehouse", "table": "shop.orders"},
    operation="compact",
)


def run(request: CompactRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _compact(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _compact(wanted: CompactRequest, spark: SparkSession | None) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    with compacting_executor(wanted, spark, wanted.table) as executor:
        return compact_table(
            table,
            wanted,
            executor,
            strategy=wanted.strategy,
            buckets=wanted.buckets,
            order_by=wanted.order_by,
            order_strategy=wanted.order_strategy,
            **table.given_arguments(JOB.operation, max_commits=wanted.max_commits),
        )


if __name__ == "__main__":
    sys.exit(main())
