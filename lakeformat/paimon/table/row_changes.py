# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` that delete and update rows by condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition

if TYPE_CHECKING:
    from lakeformat.paimon.row_changes.request import OnProgress
    from lakeformat.rows.assignments import NewValues
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Conflict
    from lakeformat.tables.row_change_report import RowChangeReport

__all__ = ["TableRowChanges"]

_IN_THE_NEWEST = (
    "leave out read_snapshot and conflict, so that the call finds and changes the rows of the "
    "newest snapshot"
)


class TableRowChanges(TableReads):
    """The methods of ``Table`` that delete and update rows by condition."""

    @renamed_argument("tell", "on_progress")
    def delete(
        self,
        where: Where,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        read_snapshot: AnyPosition | str | None = None,
        conflict: Conflict | None = None,
    ) -> RowChangeReport:
        """Delete the rows that meet a condition, in one commit.

        With a primary key, a row of kind ``-D`` is written for each row to delete. Without one,
        deletion vectors mark the rows if the table has ``deletion-vectors.enabled``; otherwise the
        files with such rows are rewritten.

        The search is repeated if another commit changes the same files meanwhile or, in a table
        with a primary key, the same partitions. A repeated search also finds rows that other
        writers have added since. Rows that are added after the last search are kept.

        ``dry_run`` only counts the rows. Earlier snapshots keep deleted rows until these snapshots
        expire. With ``commit``, a delete that finds no row is published, too, so that a retry finds
        this commit. ``conflict="transaction-order"`` searches the rows in ``read_snapshot`` and
        keeps those whose key other commits have changed since; see ``write``.

        Raise InvalidRequestError if ``where`` is None, if ``read_snapshot`` is passed without
        transaction order, or if ``conflict="transaction-order"`` is passed without
        ``read_snapshot``. Raise UnsupportedError for a table that numbers its rows
        (``row-tracking.enabled``). Also raise it if the option
        ``partial-update.remove-record-on-sequence-group`` is set, and a found row has no value in
        the sequence columns of the option's groups: the delete of this row would have no effect.
        """
        from lakeformat.paimon.row_changes.change import delete_rows

        return delete_rows(
            self._handle,
            where,
            commit=commit,
            dry_run=dry_run,
            on_progress=on_progress,
            read=_read(self._handle, read_snapshot, conflict),
        )

    @renamed_argument("tell", "on_progress")
    def update(
        self,
        where: Where | None,
        set: NewValues,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        read_snapshot: AnyPosition | str | None = None,
        conflict: Conflict | None = None,
    ) -> RowChangeReport:
        """Set columns of the rows that meet a condition; ``where=None`` means all rows.

        ``set={"price": 1}`` stores one value in each row. A function computes the values from the
        old rows: ``{"price": lambda rows: pc.add(rows["price"], 1)}``. The function is called again
        after a conflict. No value is rounded or truncated. In a primary-key table the rows are
        written again with their new values; key columns cannot be updated. In a table without
        primary key the old rows are deleted as by ``delete``, and the new rows are added.
        Conflicts, rows of other writers, ``dry_run``, ``read_snapshot`` and ``conflict`` are
        handled as by ``delete``.
        """
        from lakeformat.paimon.row_changes.change import update_rows

        return update_rows(
            self._handle,
            where,
            set,
            commit=commit,
            dry_run=dry_run,
            on_progress=on_progress,
            read=_read(self._handle, read_snapshot, conflict),
        )


def _read(
    handle: TableHandle, read_snapshot: AnyPosition | str | None, conflict: Conflict | None
) -> tuple[int, str | None] | None:
    """Return the number of the snapshot in which rows are searched, and its identity if known.

    The identity shows if a rollback has reused the number for another snapshot. Return None for the
    newest snapshot. Raise InvalidRequestError if ``read_snapshot`` is given without transaction
    order, or transaction order without ``read_snapshot``.
    """
    if read_snapshot is None and conflict is None:
        return None
    from lakeformat.paimon.table.writes import commit_options
    from lakeformat.paimon.transaction_order.supported import is_transaction_order

    if is_transaction_order(handle, conflict, read_snapshot, otherwise=_IN_THE_NEWEST):
        options = commit_options(handle, None, None, None, read_snapshot)
        assert options.read_snapshot is not None
        return options.read_snapshot, options.read_identity
    if read_snapshot is not None:
        raise InvalidRequestError(
            f"read_snapshot needs conflict='transaction-order' on {handle.uri}: without it, the "
            "call finds and changes the rows of the newest snapshot. Nothing was changed; pass "
            "both arguments, or leave out read_snapshot"
        )
    return None
