# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` that delete and update rows by condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId

if TYPE_CHECKING:
    from lakeformat.paimon.row_changes.change import OnProgress
    from lakeformat.rows.assignments import NewValues
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.row_change_report import RowChangeReport

__all__ = ["TableRowChanges"]


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
    ) -> RowChangeReport:
        """Delete the rows that meet a condition, in one commit.

        With a primary key, delete rows are written. Without one, the rows are marked by deletion
        vectors if the table has ``deletion-vectors.enabled``; otherwise only the files that hold
        them are rewritten.

        Rows that other writers add meanwhile are kept. If another commit changes the same files
        first, or the same partitions of a table with a primary key, the rows are searched again.
        ``dry_run`` only counts them. Earlier snapshots keep them until they expire. With a
        ``commit`` a change that meets no row is published, too, so that a repetition finds it.
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
        """Set columns of the rows that meet a condition; ``where=None`` means all rows.

        ``set={"price": 1}`` stores one value in each row. A function is called with the old rows,
        ``{"price": lambda rows: pc.add(rows["price"], 1)}``, and again after a conflict. No value
        is rounded or truncated. In a primary-key table the rows are written again with their new
        values; key columns cannot be updated. In a table without primary key the old rows are
        deleted as by ``delete``, and the new ones added. Conflicts, rows of other writers and
        ``dry_run`` are handled as by ``delete``.
        """
        from lakeformat.paimon.row_changes.change import update_rows

        return update_rows(
            self._handle, where, set, commit=commit, dry_run=dry_run, on_progress=on_progress
        )
