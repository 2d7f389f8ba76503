# SPDX-License-Identifier: Apache-2.0
"""Reports the health of a table: facts, a score, and reasons with advice."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lakeformat.errors import LakeError
from spark_jobs.job_requests.health import HealthRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AS_BAD", "JOB", "UnhealthyTableError", "main", "run"]

AS_BAD = {"unhealthy": ("unhealthy",), "degraded": ("degraded", "unhealthy")}

JOB = Job(
    "health",
    HealthRequest,
    {"warehouse": "warehouse", "table": "shop.orders"},
    operation="health",
)


class UnhealthyTableError(LakeError):
    """The health of a table is ``fail_when`` or worse. The message has the reasons with advice."""


def run(request: HealthRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    Raise ``UnhealthyTableError`` if the verdict is ``fail_when`` or worse. The job does not use
    ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: HealthRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    report = table.health(time_travel=wanted.time_travel, unknown=wanted.unknown)
    reasons = "; ".join(str(reason) for reason in report.reasons) or "no problems found"
    why = f" ({report.why_they_differ})" if report.why_they_differ else ""
    verdict = f"{report.verdict}, score {report.score}{why}: {reasons}"
    if wanted.fail_when is not None and report.verdict in AS_BAD[wanted.fail_when]:
        raise UnhealthyTableError(f"{wanted.table} is {verdict}")
    return Outcome(
        reason=verdict,
        report=report.to_dict(),
        newest_before=report.snapshot_id,
    )


if __name__ == "__main__":
    sys.exit(main())
