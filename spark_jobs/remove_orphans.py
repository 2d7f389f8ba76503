# SPDX-License-Identifier: Apache-2.0
"""Deletes files that no snapshot, tag, branch or changelog references. Dry run by default."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lakeformat.errors import UnsupportedError
from spark_jobs.job_requests.remove_orphans import RemoveOrphansRequest
from spark_jobs.job_requests.request import JsonObject
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table
from spark_jobs.runtime.tasks import executor_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import DiscardReport, Table

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "remove_orphans",
    RemoveOrphansRequest,
    {"warehouse": "warehouse", "table": "shop.orders", "older_than": "2 d", "dry_run": True},
    operation="remove_orphans",
)


def run(request: RemoveOrphansRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    With engine ``spark`` the job uses the session ``spark``; ``spark=None`` starts one.
    """
    return JOB.answer(request, lambda wanted: _act(wanted, spark))


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: RemoveOrphansRequest, spark: SparkSession | None) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    _require_taken_keys(table, wanted)
    since = wanted.staged_older_than
    # Both checks come before the first deletion: a refused run deletes nothing.
    staged = [] if since is None else table.staged.discard(older_than=since, dry_run=True)
    name = f"remove orphans of {wanted.table}"
    with executor_of(wanted.engine, spark, name, unit="manifests or directories") as executor:
        report = table.remove_orphans(
            wanted.older_than,
            wanted.dry_run,
            running_since=wanted.running_since,
            allow_younger=wanted.allow_younger,
            max_share=wanted.max_share,
            external_paths=wanted.external_paths,
            executor=executor,
        )
    if staged and not wanted.dry_run:
        staged = table.staged.discard(older_than=since, dry_run=False)
    return Outcome(
        reason="; ".join([report.reason, *(_sentence(each) for each in staged)]),
        report={**report.to_dict(), "staged": [each.to_dict() for each in staged]},
        skipped=not report.orphan_files and not staged,
        newest_before=newest_snapshot(table),
    )


def _require_taken_keys(table: Table, wanted: RemoveOrphansRequest) -> None:
    """Raise ``UnsupportedError`` for a key of the request that the format of the table refuses.

    This happens before Spark starts.
    """
    refused = table.refused_arguments.get(JOB.operation, {})
    for advice, argument, is_given in (
        (
            "in this process, not in Spark tasks: use engine 'python'",
            "executor",
            wanted.engine != "python",
        ),
        (
            "only in its own directories: leave out key 'external_paths'",
            "external_paths",
            bool(wanted.external_paths),
        ),
    ):
        if is_given and argument in refused:
            raise UnsupportedError(
                f"{wanted.table} is {table.kind}. Its orphan files are searched for {advice}"
            )


def _sentence(staged: DiscardReport) -> str:
    verb = "would be " if staged.dry_run else ""
    return f"{staged.staged} {verb}{staged.outcome}: {staged.reason}"


if __name__ == "__main__":
    sys.exit(main())
