# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE of the rows that meet a condition.

A file of which all rows are deleted is removed. In any other file the rows are deleted by position,
or the file is rewritten without them. An UPDATE adds the new rows in the same commit.
"""

from __future__ import annotations

from functools import partial

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.row_changes.changed_files import UnitWork
from lakeformat.iceberg.row_changes.matched_rows import matched_rows, plan_matches
from lakeformat.iceberg.row_changes.method import method_of
from lakeformat.iceberg.row_changes.new_values import bind_update
from lakeformat.iceberg.row_changes.row_delta import is_serializable
from lakeformat.iceberg.row_changes.run import (
    ChangeRequest,
    PreparedChange,
    change_reason,
    replayed_report,
    run_change,
)
from lakeformat.iceberg.write.file_choice import FilesWhere, files_where
from lakeformat.iceberg.write.overwrite import delete_chosen
from lakeformat.rows.assignments import NewValues
from lakeformat.rows.conditions.filter import Where
from lakeformat.rows.conditions.predicate import Constant
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import OnUnit
from lakeformat.tables.row_change_report import Method, RowChangeReport, RowOperation

__all__ = ["delete_rows", "update_rows"]


class _UndecidedError(LakeError):
    """Raised if partitions alone do not decide which rows meet the condition."""


def delete_rows(
    handle: TableHandle,
    where: Where,
    *,
    commit: CommitId | None = None,
    dry_run: bool = False,
    on_progress: OnUnit | None = None,
) -> RowChangeReport:
    """Delete the rows that meet a condition; a dry run only counts them.

    A repeated call with the same ``commit`` publishes nothing again. After a conflict everything is
    planned again; ten conflicts in a row raise ``CommitConflictError``. Raise
    ``InvalidRequestError`` for a condition that does not fit the table.
    """
    if where is None:
        raise InvalidRequestError(
            "where is None, but must be a condition on the rows to delete; use truncate() to "
            "delete all rows"
        )
    request = ChangeRequest(
        operation=RowOperation.DELETE, commit=commit, dry_run=dry_run, on_progress=on_progress
    )
    found = None if dry_run else _delete_partitions(handle, request, where)
    if found is not None:
        return found
    return run_change(handle, request, lambda: _prepared(handle, request, where))


def update_rows(
    handle: TableHandle,
    where: Where | None,
    new_values: NewValues,
    *,
    commit: CommitId | None = None,
    dry_run: bool = False,
    on_progress: OnUnit | None = None,
) -> RowChangeReport:
    """Set columns of the rows that meet a condition; ``where=None`` means all rows.

    A dry run only counts the rows. A repeated call with the same ``commit`` publishes nothing
    again. After a conflict everything is planned again; ten conflicts in a row raise
    ``CommitConflictError``. Raise ``InvalidRequestError`` for a condition or a value that does not
    fit the table.
    """
    request = ChangeRequest(
        operation=RowOperation.UPDATE, commit=commit, dry_run=dry_run, on_progress=on_progress
    )
    chosen: Where = Constant(value=True) if where is None else where
    return run_change(handle, request, lambda: _prepared(handle, request, chosen, new_values or {}))


def _delete_partitions(
    handle: TableHandle, request: ChangeRequest, where: Where
) -> RowChangeReport | None:
    """Delete whole files if partitions decide which rows meet the condition; else return None.

    Files that other commits add in the meantime are deleted, too, if their partitions meet the
    condition.
    """
    metadata = handle.load().metadata

    def choose(newest: TableMetadata) -> FilesWhere:
        choice = files_where(newest, where)
        if not all(choice.is_decided_by(newest, spec) for spec in newest.partition_specs):
            raise _UndecidedError
        return choice

    try:
        choose(metadata)
        published = delete_chosen(handle, choose, commit=request.commit)
    except _UndecidedError:  # another commit may have changed columns or partitions meanwhile
        return None
    if published.is_replayed:
        return replayed_report(handle, request, published)
    snapshot = published.snapshot
    summary = {} if snapshot is None else snapshot.summary

    def number(key: str) -> int:
        return 0 if snapshot is None else snapshot.count(key)

    deleted = [number("deleted-records"), number("removed-position-deletes")]
    # Delete files may also list rows that are already deleted; a deletion vector lists only live
    # rows.
    is_open = {"removed-equality-deletes", "removed-position-delete-files"} & summary.keys()
    rows = None if is_open else deleted[0] - deleted[1]
    snapshot_id = None if snapshot is None else snapshot.snapshot_id
    return RowChangeReport(
        table=handle.uri,
        operation=request.operation,
        method=method_of(metadata, request.operation.lower()),
        dry_run=False,
        read_snapshot_id=None if snapshot is None else snapshot.parent_id,
        snapshot_id=snapshot_id,
        rows=rows,
        files_removed=number("deleted-data-files"),
        attempts=published.attempts,
        reason=change_reason(request, rows, snapshot_id),
    )


def _prepared(
    handle: TableHandle,
    request: ChangeRequest,
    where: Where,
    new_values: NewValues | None = None,
) -> PreparedChange:
    """Plan the change against the newest snapshot; without ``new_values`` it is a DELETE."""
    is_delete, name = new_values is None, request.operation.lower()
    loaded = handle.load()
    metadata = loaded.metadata
    method = method_of(metadata, name)
    moves = method is Method.REWRITE or not is_delete
    plan = plan_matches(loaded, handle.branch, where, with_all_deletes=moves)
    plan.scan.expect([each.split for each in plan.open])
    work = UnitWork(
        plan=plan,
        method=method,
        find=partial(matched_rows, plan.scan),
        update=None if is_delete else bind_update(metadata.schema, new_values),
        environment=handle.environment,
        is_dry_run=request.dry_run,
    )
    return PreparedChange(
        work=work,
        searched=plan.open if is_delete else (*plan.whole, *plan.open),
        whole=plan.whole if is_delete else (),
        unseen=plan.condition if is_serializable(metadata.properties, name) else None,
        # Else a repetition would change rows that were added since.
        is_recorded=request.commit is not None,
    )
