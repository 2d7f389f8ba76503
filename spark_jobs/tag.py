# SPDX-License-Identifier: Apache-2.0
"""Creates, replaces, renames or deletes a tag of a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.job_requests.request import JsonObject
from spark_jobs.job_requests.tag import TagRequest
from spark_jobs.runtime.command import run_command
from spark_jobs.runtime.job import Job, JobResult, Outcome, newest_snapshot, wanted_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat import Table, TagReport

__all__ = ["JOB", "main", "run"]

JOB = Job(
    "tag",
    TagRequest,
    {
        "warehouse": "warehouse",
        "table": "shop.orders",
        "action": "create",
        "tag": "monthly",
        "exist_ok": True,
    },
    operation="tags",
)


def run(request: TagRequest | JsonObject, spark: SparkSession | None = None) -> JobResult:
    """Run the job and return its result; raise ``InvalidRequestError`` for a wrong request.

    The job does not use ``spark``.
    """
    return JOB.answer(request, _act)


def main(arguments: list[str] | None = None) -> int:
    """Run the job with the arguments of a command line; return the exit code.

    ``arguments=None`` means the arguments of this process.
    """
    return run_command(JOB, run, arguments)


def _act(wanted: TagRequest) -> Outcome:
    table = wanted_table(wanted, JOB.operation)
    if wanted.action == "delete":
        return _delete(table, wanted)
    report = _CHANGES[wanted.action](table, wanted)
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=report.action == "kept",
        newest_before=newest_snapshot(table),
    )


def _delete(table: Table, wanted: TagRequest) -> Outcome:
    is_there = wanted.tag in {tag.name for tag in table.tags.list()}
    report = table.tags.delete(
        wanted.tag, force=wanted.force, missing_ok=wanted.missing_ok, dry_run=wanted.dry_run
    )
    return Outcome(
        reason=report.reason,
        report=report.to_dict(),
        skipped=not is_there,
        newest_before=newest_snapshot(table),
    )


def _create(table: Table, wanted: TagRequest) -> TagReport:
    return table.tags.create(
        wanted.tag,
        snapshot=wanted.snapshot,
        tag=wanted.from_tag,
        at_or_after=wanted.at_or_after,
        watermark=wanted.watermark,
        retain=wanted.retain,
        exist_ok=wanted.exist_ok,
    )


def _replace(table: Table, wanted: TagRequest) -> TagReport:
    return table.tags.replace(
        wanted.tag,
        snapshot=wanted.snapshot,
        tag=wanted.from_tag,
        retain=wanted.retain,
        force=wanted.force,
    )


def _rename(table: Table, wanted: TagRequest) -> TagReport:
    return table.tags.rename(wanted.tag, wanted.new_name or "")


_CHANGES = {"create": _create, "replace": _replace, "rename": _rename}


if __name__ == "__main__":
    sys.exit(main())
