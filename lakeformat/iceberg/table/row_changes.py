# SPDX-License-Identifier: Apache-2.0
"""The methods of a table that delete, update and upsert rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.iceberg.write.report import UpsertReport
    from lakeformat.rows.assignments import NewValues
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_progress import OnUnit
    from lakeformat.tables.row_change_report import RowChangeReport

__all__ = ["TableRowChanges"]


class TableRowChanges(TableHistory):
    """The methods of a table that delete, update and upsert rows."""

    def delete(
        self,
        where: Where,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Delete the rows that meet a condition, in one commit.

        A repeated call with the same ``commit`` publishes nothing again. Files whose rows all meet
        the condition are removed. For other files the positions of the rows are written: as
        deletion vectors in version 3, as position delete files in version 2. In version 1, or if
        ``write.delete.mode`` is ``copy-on-write``, these files are read whole, and rewritten
        without the rows.

        If other commits change these files in the meantime, the rows are searched again; ten such
        conflicts in a row raise ``CommitConflictError``. Rows that other commits add in the
        meantime are deleted, too. They remain only if the property
        ``write.delete.isolation-level`` is ``snapshot``, and ``where`` names a column that is not
        an identity partition. ``dry_run`` only counts the rows. With a ``commit`` a snapshot is
        published even if no row meets the condition, so that a repeated call finds it. Raise
        ``InvalidRequestError`` for a condition that does not fit the table.
        """
        from lakeformat.iceberg.row_changes.change import delete_rows

        return delete_rows(
            self._handle, where, commit=commit, dry_run=dry_run, on_progress=on_progress
        )

    def update(
        self,
        where: Where | None,
        set: NewValues,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Set columns of the rows that meet a condition; ``where=None`` means all rows.

        ``set={"price": 1}`` stores one value in each row. A function is called with the old rows,
        as in ``{"price": lambda rows: pc.add(rows["price"], 1)}``, and again after a conflict.
        Values are never rounded or cut: ``InvalidRequestError`` is raised for a value that does not
        fit its column. The old rows are deleted as by ``delete``, with the properties
        ``write.update.*`` and the same errors. The new rows are added in the same commit. In
        version 3 the new rows keep the row ids.
        """
        from lakeformat.iceberg.row_changes.change import update_rows

        return update_rows(
            self._handle, where, set, commit=commit, dry_run=dry_run, on_progress=on_progress
        )

    def upsert(
        self,
        data: Any,
        by: Sequence[str] | None = None,
        *,
        kinds: Any = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> UpsertReport:
        """Add rows, and replace the stored rows that have the same key, in one commit.

        ``by`` names the columns of the key, by default the identifier fields of the schema. Raise
        ``InvalidRequestError`` for a null in a key, or, without ``kinds``, for two rows with the
        same key. A stored row is replaced as a whole: a column that ``data`` lacks gets its
        default, or nulls. ``data``, ``commit`` and ``properties`` are as in ``write``. The given
        rows are held in memory.

        With ``kinds`` each row is a change, and the last change of each key counts:
        ``+I`` and ``+U`` store the row, ``-D`` and ``-U`` delete the stored rows with its key.
        ``kinds`` is the name of a column, or has one kind for each row, as in ``write`` of a Paimon
        table. A deleted row needs only its key.

        The stored rows are deleted as by ``delete``, with the property ``write.merge.mode``. In
        version 3 a new row keeps the row id of the row that it replaces. If another commit may have
        added one of the keys in the meantime, the stored rows are searched again; ten such
        conflicts in a row raise ``CommitConflictError``.
        """
        from lakeformat.iceberg.row_changes.upsert import upsert

        return upsert(self._handle, data, by, kinds=kinds, commit=commit, properties=properties)
