# SPDX-License-Identifier: Apache-2.0
"""The method ``remove_orphans`` of an Iceberg table, and of the two stores of a Mixed table."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory
from lakeformat.tables.table import Table

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.iceberg.orphans.remove import OrphanOptions
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.past_time import PastTime

__all__ = ["OrphanRemoval", "TableOrphans"]


class OrphanRemoval(Table):
    """The method that removes orphan files, with the checks of its arguments."""

    def remove_orphans(
        self,
        older_than: PastTime | None = None,
        dry_run: bool = True,
        *,
        running_since: Moment | None = None,
        allow_younger: bool = False,
        max_share: float = 0.5,
        on_progress: OnRemoval | None = None,
        external_paths: bool = False,
        executor: str | Executor | None = None,
    ) -> OrphanReport:
        """Remove orphan files, to which neither metadata nor a staged result refers.

        Metadata means the current metadata and the earlier metadata files in the metadata log; in a
        Mixed table, those of both stores. Dry run by default. A file is removed only if it is in
        the table's directory and was last changed before ``older_than``: a time, or an age such as
        ``"2 d"``.
        The default is three days ago or 5 minutes before ``running_since``, the earlier of the two.
        Files are kept if a name in their path begins with ``_`` or ``.``, except directories of
        partitions such as ``_day=1``.

        Files of writes in progress look like orphan files. So ``older_than`` must be at least one
        day ago, and at least 5 minutes before ``running_since``, the start of the oldest write in
        progress. A later time raises ``InvalidRequestError``, except with ``allow_younger=True``;
        use this only while no writer is active.

        Except in a dry run, the same error is raised if a table without snapshots has orphan files.
        It is also raised for more than 100 orphan files, if they are more than the share
        ``max_share`` of the table's files or bytes. With ``max_share=1``, files are removed in both
        cases. ``on_progress`` is called with every orphan file. Raise ``UnsupportedError`` for
        ``external_paths``, for an ``executor`` other than ``"threads"`` and ``"serial"``, and if
        ``gc.enabled`` is false.

        If the removal is refused for one store of a Mixed table, no file of either is deleted.
        """
        from lakeformat.iceberg.orphans.remove import OrphanOptions

        given = {
            "external_paths": external_paths or None,
            "executor": None if executor in ("threads", "serial") else executor,
        }
        self.require_arguments("remove_orphans", **given)
        options = OrphanOptions(
            older_than=older_than,
            running_since=running_since,
            allow_younger=allow_younger,
            max_share=max_share,
        )
        return self._remove_orphans(options, dry_run=dry_run, on_progress=on_progress)

    @abstractmethod
    def _remove_orphans(
        self, options: OrphanOptions, *, dry_run: bool, on_progress: OnRemoval | None
    ) -> OrphanReport: ...


class TableOrphans(OrphanRemoval, TableHistory):
    """The removal of the orphan files of one Iceberg table."""

    def _remove_orphans(
        self, options: OrphanOptions, *, dry_run: bool, on_progress: OnRemoval | None
    ) -> OrphanReport:
        from lakeformat.iceberg.orphans.remove import remove_orphans

        return remove_orphans(self._handle, options, dry_run=dry_run, on_progress=on_progress)
