# SPDX-License-Identifier: Apache-2.0
"""Restores an earlier snapshot of a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.request import JsonObject
from spark_jobs.job_requests.rollback import RollbackRequest
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "rollback",
    RollbackRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "snapshot": 1, "dry_run": True},
    operation="rollback",
)


def run(request: RollbackRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: RollbackRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    before = newest_snapshot(table)
    report = table.rollback(
        snapshot=wanted.snapshot,
        tag=wanted.tag,
        as_of=wanted.as_of,
        watermark=wanted.watermark,
        as_latest=wanted.as_latest,
        force=wanted.force,
        commit=wanted.commit_id(),
        dry_run=wanted.dry_run,
    )
    gone = (report.removed_snapshots, report.removed_changelogs, report.removed_tags)
    cut = any((*gone, report.moved_consumers))
    moved = report.replayed or (report.snapshot_id != before if wanted.as_latest else cut)
    published = wanted.as_latest and not wanted.dry_run and moved
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not moved,
        snapshot_ids=(report.snapshot_id,) if published else (),
        newest_before=before,
        numbered=table.numbers_snapshots,
        replayed=report.replayed,
    )


if __name__ == "__main__":
    sys.exit(main())
