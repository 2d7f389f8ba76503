# SPDX-License-Identifier: Apache-2.0
"""Tags, branches and rollback of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.paimon.snapshot_positions import snapshot_number
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition, Position

if TYPE_CHECKING:
    from lakeformat.paimon.branches.table_branches import TableBranches
    from lakeformat.paimon.tags.table_tags import TableTags
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.reference_reports import RollbackReport

__all__ = ["TableReferences"]


class TableReferences(TableReads):
    """The part of a table that names snapshots and rolls back to them."""

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

    def rollback(
        self,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        as_latest: bool = True,
        force: bool = False,
        commit: CommitId | None = None,
        dry_run: bool = False,
    ) -> RollbackReport:
        """Roll back to a snapshot: by number, by tag, or the last at a time or watermark.

        A new snapshot with the rows of the old one is published. Nothing is lost, and the rollback
        can be undone the same way. ``as_latest=False`` cuts history instead: every newer snapshot
        and its tags are deleted, and their numbers are reused. That is refused without ``force`` if
        tags or branches depend on them. Files left without references are removed by
        ``remove_orphans``; commits in progress retry on the remaining history.

        With ``commit`` a repeated rollback finds the first one and does nothing, so rows committed
        since are kept. Such a rollback publishes a snapshot even if the rows are equal already. A
        rollback that cuts history is recognised for 7 days.
        """
        from lakeformat.paimon.rollback.rollback import rollback

        if isinstance(snapshot, Position):
            snapshot = snapshot_number(self._handle, "snapshot must be a snapshot number", snapshot)
        return rollback(
            self._handle,
            snapshot=snapshot,
            tag=tag,
            as_of=as_of,
            watermark=watermark,
            as_latest=as_latest,
            force=force,
            commit=commit,
            dry_run=dry_run,
        )
