# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE: finds the rows, writes their replacement, and commits.

Rows that a writer adds to an append table after the search are not changed. If a compaction or
another change of rows commits first, the rows are searched again in the newest snapshot.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.commit import CommitOptions
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.row_changes.attempt import ChangeAttempt, FoundRows
from lakeformat.paimon.row_changes.plan import ChangeUnit
from lakeformat.paimon.row_changes.request import (
    OnProgress,
    RowChangeRequest,
    find_replay,
)
from lakeformat.rows.assignments import NewValues
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.row_change_report import RowChangeReport, RowOperation

__all__ = ["OnProgress", "delete_rows", "update_rows"]

_log = logging.getLogger(__name__)


def delete_rows(
    handle: TableHandle,
    where: Where,
    *,
    commit: CommitId | None = None,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    read: tuple[int, str | None] | None = None,
) -> RowChangeReport:
    """Delete the rows that meet a condition; a dry run only counts them.

    ``read`` has the number of the snapshot in which the rows are searched, and its identity if
    known; ``read=None`` means the newest snapshot. Keys that other commits have changed since that
    snapshot are not deleted. Raise InvalidRequestError if ``where`` is None.
    """
    if where is None:
        raise InvalidRequestError(
            "where is None, but must be a condition on the rows to delete; use truncate() to "
            "delete all rows"
        )
    return _changed(
        handle,
        RowChangeRequest(
            operation=RowOperation.DELETE,
            where=where,
            commit=commit,
            dry_run=dry_run,
            on_progress=on_progress,
            read=read,
        ),
    )


def update_rows(
    handle: TableHandle,
    where: Where | None,
    new_values: NewValues,
    *,
    commit: CommitId | None = None,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    read: tuple[int, str | None] | None = None,
) -> RowChangeReport:
    """Set columns of the rows that meet a condition; ``where=None`` means all rows.

    A dry run only counts the rows. ``read`` is as in ``delete_rows``.
    """
    return _changed(
        handle,
        RowChangeRequest(
            operation=RowOperation.UPDATE,
            where=where,
            new_values=new_values,
            commit=commit,
            dry_run=dry_run,
            on_progress=on_progress,
            read=read,
        ),
    )


def _changed(handle: TableHandle, request: RowChangeRequest) -> RowChangeReport:
    if request.on_progress is not None and not callable(request.on_progress):
        raise InvalidRequestError(
            f"on_progress must be a function of one argument, got {request.on_progress!r}"
        )
    CommitOptions(commit=request.commit)  # this call refuses a value that is not an identity
    began = handle.environment.now_millis()
    if (done := find_replay(handle, request)) is not None:
        return done
    report = _until_done(handle, request)
    _log.info("%s in %s: %s", request.operation, handle.uri, report.reason)
    return replace(report, millis=handle.environment.now_millis() - began)


def _until_done(handle: TableHandle, request: RowChangeRequest) -> RowChangeReport:
    """Find the rows, delete or update them, and commit; start again if another commit changed the
    same files.
    """
    attempts: list[ChangeAttempt] = []

    def plan() -> Round[ChangeUnit, FoundRows] | None:
        attempts.append(ChangeAttempt.on_newest(handle, request))
        return attempts[-1].plan()

    carry_out(
        Steps(
            name=f"{request.operation} of rows of {handle.uri}",
            head=head_of(handle),
            plan=plan,
            take=lambda found: attempts[-1].take(*found),
            finish=lambda: attempts[-1].write_and_commit(),
            environment=handle.environment,
        )
    )
    last = attempts[-1]
    return replace(last.result or last.report(rows=0), attempts=len(attempts))
