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
        """Delete the rows that meet a condition, in one commit; the same ``commit`` publishes once.

        Files of which all rows meet it are removed. The condition's columns are read from other
        files, and the positions of the rows are written: as deletion vectors in version 3, as files
        of position deletes in version 2. If other commits change these files meanwhile, the rows
        are searched again. Rows that other commits add meanwhile are deleted, too, unless the
        property ``write.delete.isolation-level`` is ``snapshot``.
        """
        from lakeformat.iceberg.row_changes.delete import delete_rows

        return delete_rows(self._handle, where, commit=commit)
