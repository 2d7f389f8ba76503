# SPDX-License-Identifier: Apache-2.0
"""The shared part of the jobs that delete or update the rows that meet a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_jobs.runtime.job import Outcome, newest_snapshot, wanted_table
from spark_jobs.runtime.progress import report_compaction

if TYPE_CHECKING:
    from lakeformat import RowChangeReport, Table
    from spark_jobs.job_requests.row_changes import RowChangeRequest

__all__ = ["change_rows"]


def change_rows(
    wanted: RowChangeRequest, operation: str, change: Callable[..., RowChangeReport]
) -> Outcome:
    """Call ``change`` with the table and the arguments that ``delete`` and ``update`` share; return
    the outcome. ``operation`` is ``delete`` or ``update``.

    If no row meets the condition, ``skipped`` of the outcome is True. Even then a job with a commit
    identity publishes a snapshot, so that a retry finds that the work is done. Raise
    ``NotFoundError`` for a missing table, and ``UnsupportedError`` if its format lacks the
    operation.
    """
    table: Table = wanted_table(wanted, operation)
    order = table.given_arguments(
        operation, read_snapshot=wanted.read_snapshot, conflict=wanted.conflict
    )
    before = newest_snapshot(table)
    report = change(
        table,
        commit=wanted.commit_id(),
        dry_run=wanted.dry_run,
        on_progress=report_compaction,
        **order,
    )
    return replace(Outcome.of_commit(table, report, before), skipped=report.rows == 0)
