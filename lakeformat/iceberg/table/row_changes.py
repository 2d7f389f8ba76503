# SPDX-License-Identifier: Apache-2.0
"""Deletes and updates of rows by condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.iceberg.write.report import WriteReport
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.commit_id import CommitId

__all__ = ["TableRowChanges"]


class TableRowChanges(TableHistory):
    """The part of a table that deletes and updates rows by condition."""

    def delete(self, where: Where, *, commit: CommitId | None = None) -> WriteReport:
        """Delete the rows that meet a condition, in one commit, if they fill whole files.

        Partitions and bounds of the files decide, and no row is read. If some rows of a file may
        meet the condition and other ones not, ``UnsupportedError`` is raised and nothing changes.
        """
        from lakeformat.iceberg.write.overwrite import delete_where

        return delete_where(self._handle, where, commit=commit)
