"""Rows of a table that are deleted or get new values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.table.reads import TableReads
from lakeformat.rows.conditions.filter import Where

if TYPE_CHECKING:
    from lakeformat.paimon.row_changes.assignments import NewValues
    from lakeformat.paimon.row_changes.change import OnProgress
    from lakeformat.paimon.row_changes.row_change_report import RowChangeReport

__all__ = ["TableRowChanges"]


class TableRowChanges(TableReads):
    """The part of a table that changes single rows."""

    @renamed_argument("tell", "on_progress")
    def delete(
        self,
        where: Where,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> RowChangeReport:
        """Delete the rows that meet a condition, in one commit.

        Without a primary key their positions are marked where the table has
        ``deletion-vectors.enabled``; else the files they are in are written again without them,
        and no other file is. With a primary key rows are written that delete them.

        Rows that others add meanwhile stay. If somebody else changes the same files first, or the
        same partitions of a table with a primary key, the rows are looked for anew. ``dry_run``
        counts them and stops. Snapshots before this one keep them until they expire.
        """
        from lakeformat.paimon.row_changes.change import delete_rows

        return delete_rows(
            self._handle, where, commit=commit, dry_run=dry_run, on_progress=on_progress
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
    ) -> RowChangeReport:
        """Give columns of the rows that meet a condition new values; ``where=None`` is all rows.

        ``set={"price": 1}`` puts the same value into each row; what computes them is called with
        rows as they were, ``{"price": lambda rows: pc.add(rows["price"], 1)}``, and again after a
        conflict. No value is rounded or cut. Without a primary key rows are taken out as by
        ``delete`` and added with their new values; with one, which no update changes, they are
        written once more. The rest is as with ``delete``.
        """
        from lakeformat.paimon.row_changes.change import update_rows

        return update_rows(
            self._handle, where, set, commit=commit, dry_run=dry_run, on_progress=on_progress
        )
