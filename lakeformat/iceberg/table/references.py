# SPDX-License-Identifier: Apache-2.0
"""Tags, branches and rollback of a table."""

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
    """The part of a table that names snapshots and rolls back to them."""

    @property
    def tags(self) -> TableTags:
        """The tags of the table."""
        from lakeformat.iceberg.references.table_tags import TableTags

        return TableTags(self._handle)

    @property
    def branches(self) -> TableBranches:
        """The branches of the table, without main."""
        from lakeformat.iceberg.references.table_branches import TableBranches

        return TableBranches(self._handle)

    def cherry_pick(
        self, snapshot: AnyPosition | None = None, *, wap_id: str | None = None
    ) -> CherryPickReport:
        """Publish a snapshot outside of the branch's history: a staged one, or another branch's.

        ``snapshot`` is its id, ``wap_id`` the ``wap.id`` that its writer staged it with. If its
        parent is the newest snapshot, the branch moves to it. Otherwise the files that it appended
        are added in a new snapshot; other changes than appends are refused. A snapshot, and a
        ``wap.id``, is published only once: a repeated call changes nothing.
        """
        from lakeformat.iceberg.cherry_pick import cherry_pick

        return cherry_pick(self._handle, snapshot, wap_id)

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        from lakeformat.iceberg.rollback import rollback

        return rollback(self._handle, request)
