# SPDX-License-Identifier: Apache-2.0
"""Publishes snapshots of a Paimon table as Iceberg metadata, or checks the published metadata."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.publish import PublishRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import (
    Job,
    JobResult,
    Outcome,
    attach_outcome,
    newest_snapshot,
    wanted_table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import Table

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "publish",
    PublishRequest,
    {"warehouse": "warehouse", "table": "shop.orders"},
    operation="publish",
)


def run(request: PublishRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    With ``check`` raise ``FailedChecksError`` if a check fails. The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: PublishRequest) -> Outcome:
    from lakeformat import publish_table

    table = wanted_table(wanted, JOB.operation)
    if wanted.check:
        return _check(table)
    report = publish_table(table)
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not (report.published or report.updated or report.catalogs),
        newest_before=newest_snapshot(table),
    )


def _check(table: Table) -> Outcome:
    from lakeformat import check_publication
    from spark_jobs.check import FailedChecksError

    report = check_publication(table)
    outcome = Outcome(
        reason=report.reason,
        report=report.to_dict(),
        newest_before=newest_snapshot(table),
    )
    if report.failed:
        error = FailedChecksError(f"{report.table}: {'; '.join(report.failed)}")
        attach_outcome(error, outcome)
        raise error
    return outcome


if __name__ == "__main__":
    sys.exit(main())
