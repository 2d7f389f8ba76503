# SPDX-License-Identifier: Apache-2.0
"""The arguments of a DELETE or UPDATE, and the report of an earlier attempt of the same commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakeformat.paimon.commit.commit_report import already_published
from lakeformat.paimon.commit.identity import EarlierCommits, require_same
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.rows.assignments import NewValues
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress
from lakeformat.tables.row_change_report import Method, RowChangeReport, RowOperation

__all__ = ["OnProgress", "RowChangeRequest", "find_replay", "method_of", "replayed"]

OnProgress = Callable[[CompactProgress], None]
"""A function that is called with the progress of the work, before the first bucket and after each.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeRequest:
    """The arguments of one DELETE or UPDATE."""

    operation: RowOperation
    where: Where | None
    new_values: NewValues | None = None
    commit: CommitId | None = None
    dry_run: bool = False
    on_progress: OnProgress | None = None
    read: tuple[int, str | None] | None = None
    """The number of the snapshot in which the rows are searched, and its identity if known.

    ``read=None`` means the newest snapshot. Keys that other commits have changed since are left
    out.
    """


def find_replay(handle: TableHandle, request: RowChangeRequest) -> RowChangeReport | None:
    """Return the report of an earlier attempt of the same commit; None if there is none.

    Raise InvalidRequestError if the earlier commit was another operation.
    """
    if request.commit is None:
        return None
    kinds = (CommitKind.APPEND, CommitKind.OVERWRITE)
    head = latest_snapshot(handle.storage, handle.layout)
    found = EarlierCommits(handle, request.commit, kinds).find(head)
    if found is None:
        return None
    kind = CommitKind.APPEND if handle.schema.primary_keys else CommitKind.OVERWRITE
    require_same(handle, found, kind, request.operation)
    return replayed(handle, request, found.id)


def replayed(handle: TableHandle, request: RowChangeRequest, number: int) -> RowChangeReport:
    """Return the report of a change that snapshot ``number`` has published before."""
    return RowChangeReport(
        table=handle.uri,
        operation=request.operation,
        method=method_of(handle),
        dry_run=request.dry_run,
        read_snapshot_id=None,
        snapshot_id=number,
        rows=None,
        attempts=0,
        replayed=True,
        reason=already_published(number),
    )


def method_of(handle: TableHandle) -> Method:
    """Return the way in which rows of the table are deleted."""
    if handle.schema.primary_keys:
        return Method.KEYS
    return Method.VECTORS if handle.options.deletion_vectors_enabled else Method.REWRITE
