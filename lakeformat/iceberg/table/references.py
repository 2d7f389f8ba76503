# SPDX-License-Identifier: Apache-2.0
"""The methods of a table for tags, branches and cherry-picks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory
from lakeformat.tables.position import AnyPosition

if TYPE_CHECKING:
    from lakeformat.iceberg.cherry_pick import CherryPickReport
    from lakeformat.iceberg.references.table_branches import TableBranches
    from lakeformat.iceberg.references.table_tags import TableTags
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.rollback_request import RollbackRequest

__all__ = ["TableReferences"]


class TableReferences(TableHistory):
    """The methods of a table for tags, branches and cherry-picks."""

    @property
    def tags(self) -> TableTags:
        """The tags of the table."""
        from lakeformat.iceberg.references.table_tags import TableTags

        return TableTags(self._handle)

    @property
    def branches(self) -> TableBranches:
        """The branches of the table, except main."""
        from lakeformat.iceberg.references.table_branches import TableBranches

        return TableBranches(self._handle)

    def cherry_pick(
        self, snapshot: AnyPosition | None = None, *, wap_id: str | None = None
    ) -> CherryPickReport:
        """Publish a staged snapshot, or a snapshot of another branch, on this branch.

        ``snapshot`` is its id or position; ``wap_id`` is the ``wap.id`` with which its writer
        staged it. If the parent of the snapshot is the newest snapshot of the branch, the branch
        moves to the snapshot. Otherwise the files that the snapshot appended are added in a new
        snapshot. A repeated call usually changes nothing. It adds the files again if the snapshot
        of the first call has expired, and all of the files have been compacted or deleted.

        Raise ``NotFoundError`` if the snapshot does not exist, and ``InvalidRequestError`` if the
        branch already has another snapshot with the same ``wap.id``, or has only some of the files
        of the snapshot. Raise ``UnsupportedError`` if the snapshot does more than append files and
        its parent is not the newest snapshot.
        """
        from lakeformat.iceberg.cherry_pick import cherry_pick

        return cherry_pick(self._handle, snapshot, wap_id)

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        from lakeformat.iceberg.rollback import rollback

        return rollback(self._handle, request)
