# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` for tags, branches and rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.paimon.table.reads import TableReads

if TYPE_CHECKING:
    from lakeformat.paimon.branches.table_branches import TableBranches
    from lakeformat.paimon.tags.table_tags import TableTags
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.rollback_request import RollbackRequest

__all__ = ["TableReferences"]


class TableReferences(TableReads):
    """The methods of ``Table`` for tags, branches and rollback."""

    @property
    def tags(self) -> TableTags:
        """The tags of the table: named snapshots."""
        from lakeformat.paimon.tags.table_tags import TableTags

        return TableTags(self._handle)

    @property
    def branches(self) -> TableBranches:
        """The branches of the table: separate histories over the same data files."""
        from lakeformat.paimon.branches.table_branches import TableBranches

        return TableBranches(self._handle)

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        from lakeformat.paimon.rollback.rollback import rollback

        return rollback(self._handle, request)
