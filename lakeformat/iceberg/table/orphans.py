# SPDX-License-Identifier: Apache-2.0
"""The method ``remove_orphans`` of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.tables.deleter import OnRemoval
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableOrphans"]


class TableOrphans(TableHistory):
    """The methods of a table that remove orphan files."""

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
        """Remove orphan files: files to which neither the current metadata nor a file in its log
        refers.

        Dry run by default. A file is removed only if it is in the table's directory and was last
        changed before ``older_than``: a time, or an age such as ``"2 d"``; by default three days.
        Files whose names begin with ``_`` or ``.`` are kept.

        Writes in progress have unreferenced files. So ``InvalidRequestError`` is raised for an
        ``older_than`` within the last day, and for one after ``running_since``, the start of the
        oldest write in progress. ``allow_younger=True`` allows both; use it only while no writer is
        active.

        The same error is raised for more than 100 orphan files, if they are more than the share
        ``max_share`` of the table's files or bytes. ``on_progress`` is called with every file.
        ``external_paths`` is not supported, nor is an ``executor`` other than a thread of this
        process.
        """
        from lakeformat.iceberg.orphans.remove import OrphanOptions, remove_orphans

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
        return remove_orphans(self._handle, options, dry_run=dry_run, on_progress=on_progress)
