"""What gives snapshots of a table names and histories: tags, branches, rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.positions import snapshot_number
from lakeformat.paimon.read.time_travel import Moment
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.position import AnyPosition, Position

if TYPE_CHECKING:
    from lakeformat.paimon.branches.table_branches import TableBranches
    from lakeformat.paimon.rollback.rollback_report import RollbackReport
    from lakeformat.paimon.tags.table_tags import TableTags

__all__ = ["TableReferences"]


class TableReferences(TableReads):
    """The part of a table that keeps snapshots, and goes back to them."""

    @property
    def tags(self) -> TableTags:
        """The tags: snapshots kept under a name."""
        from lakeformat.paimon.tags.table_tags import TableTags

        return TableTags(self._handle)

    @property
    def branches(self) -> TableBranches:
        """The branches: other histories over the same data files."""
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
        """Go back to a snapshot: by number, by tag, or the last of a time or watermark.

        A new snapshot with the rows of the old one is published: nothing is lost, and it can be
        taken back the same way. ``as_latest=False`` cuts history instead: every newer snapshot
        goes, with tags of them, and their numbers are used again; where tags or branches began
        there, that is refused without ``force``. Files that nothing leads to any more are then
        left to ``remove_orphans``; commits under way are tried again on what is left.

        With ``commit`` a repetition finds what the first try has done and does nothing: rows that
        were committed since stay. Such a rollback publishes a snapshot also where the table has
        the rows already; and one that cuts history is remembered for 7 days.
        """
        from lakeformat.paimon.rollback.rollback import rollback

        if isinstance(snapshot, Position):
            snapshot = snapshot_number(self._handle, "a snapshot is named by its number", snapshot)
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
