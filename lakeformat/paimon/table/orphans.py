# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` that remove orphan and missing files, and correct hint files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId
from lakeformat.types.type_rules import require_list

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.paimon.deletion import OnRemoval
    from lakeformat.paimon.metadata.commit_message import CommitMessage
    from lakeformat.paimon.orphans.hints import RepairHintsReport
    from lakeformat.paimon.orphans.missing import MissingFilesReport
    from lakeformat.paimon.orphans.missing_manifests import MissingManifestsReport
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.orphan_report import OrphanReport
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableOrphans"]


class TableOrphans(TableReads):
    """The methods of ``Table`` that remove orphan and missing files, and correct hint files."""

    @renamed_argument("tell", "on_progress")
    def remove_orphans(
        self,
        older_than: PastTime | None = None,
        dry_run: bool = True,
        *,
        running_since: Moment | None = None,
        in_use: Iterable[CommitMessage] = (),
        allow_younger: bool = False,
        max_share: float = 0.5,
        external_paths: bool = False,
        on_progress: OnRemoval | None = None,
        executor: str | Executor | None = None,
    ) -> OrphanReport:
        """Remove orphan files: files to which no snapshot, tag, branch or changelog refers.

        Dry run by default.

        Only files last changed before ``older_than`` (a time, or an age such as ``"2 d"``) are
        removed. The default is one day before the newest commit or, without a commit, one day ago.
        ``running_since`` is the start of the oldest write in progress. If you pass it, the newest
        commit does not matter: the default is then one day ago or five minutes before that start,
        the earlier of the two. Writes in progress have unreferenced files. So ``older_than`` must
        be at least one day ago, and at least five minutes before ``running_since``; a later time
        raises InvalidRequestError.
        ``allow_younger=True`` skips these two checks: pass it only if no writer is active.

        An old file is kept if its writer also wrote a file that is not old enough. The files of the
        messages ``in_use`` and files with unknown names are kept, too. ``external_paths`` also
        checks external paths; files of another table in these paths would be removed, too.
        ``on_progress`` is called with every file that is removed or, in a dry run, would be
        removed.

        If there are orphans, InvalidRequestError is raised in three cases: the table has no
        snapshot, tag or changelog; there are more than 100 orphans, and their share of the table's
        files or bytes exceeds ``max_share``; or a hint LATEST shows that newer snapshots may be
        lost. ``max_share=1`` skips the first two checks. A dry run reports these errors instead.

        ``executor`` reads manifests and lists directories: ``"threads"`` (the default; as many as
        the option ``file-operation.thread-num``), ``"serial"``, or an object such as
        ``spark_jobs.SparkExecutor``. The decision and the removal happen in this process.
        """
        from lakeformat.paimon.orphans.remove import OrphanOptions, remove_orphans

        require_list("in_use", in_use, "writer.prepare()")
        options = OrphanOptions(
            older_than=older_than,
            running_since=running_since,
            allow_younger=allow_younger,
            in_use=tuple(in_use),
            max_share=max_share,
            external_paths=external_paths,
        )
        return remove_orphans(
            self._handle, options, dry_run=dry_run, on_progress=on_progress, executor=executor
        )

    def remove_missing_files(
        self,
        dry_run: bool = True,
        *,
        max_share: float = 0.5,
        commit: CommitId | None = None,
    ) -> MissingFilesReport:
        """Remove missing and truncated data files from the table. Dry run by default.

        Their rows are lost, and every read of such a file fails until it is removed. In a table
        with a primary key, earlier rows that these files deleted or replaced appear again. Raise
        InvalidRequestError if more than ``max_share`` of the files are missing or truncated,
        because then the storage is probably not mounted, or the path is wrong. Raise
        UnsupportedError if any are found in a table with row ids. A dry run reports these errors
        instead.
        """
        from lakeformat.paimon.orphans.missing import remove_missing_files

        return remove_missing_files(
            self._handle, dry_run=dry_run, max_share=max_share, commit=commit
        )

    def remove_missing_manifests(self, dry_run: bool = True) -> MissingManifestsReport:
        """Remove missing manifests from the newest snapshot. Dry run by default.

        The rows of data files that only these manifests name are lost. In a table with a primary
        key, earlier rows that these files deleted or replaced appear again. A snapshot that names a
        missing manifest cannot be read. Raise InvalidRequestError if a missing manifest recorded
        deleted files, or if an append table has deletion vectors; a dry run reports this instead.
        In both cases restore the manifests from a backup, or roll back to a complete snapshot with
        ``rollback(as_latest=False)``, which deletes the newer snapshots.
        """
        from lakeformat.paimon.orphans.missing_manifests import remove_missing_manifests

        return remove_missing_manifests(self._handle, dry_run=dry_run)

    def repair(self, dry_run: bool = False) -> RepairHintsReport:
        """Correct the hint files LATEST and EARLIEST of every branch.

        The report also lists missing snapshots and changelogs. A ``dry_run`` changes nothing: it
        only reports the wrong hint files and the missing files.
        """
        from lakeformat.paimon.orphans.hints import repair_hints

        return repair_hints(self._handle, dry_run=dry_run)
