"""What a table does about files nothing leads to, files that are gone, and wrong hints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.executor import Executor
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.read.time_travel import Moment
from lakeformat.paimon.table.reads import TableReads
from lakeformat.types.type_rules import require_list

if TYPE_CHECKING:
    from lakeformat.paimon.deletion import OnRemoval
    from lakeformat.paimon.orphans.hints import RepairHintsReport
    from lakeformat.paimon.orphans.missing import MissingFilesReport
    from lakeformat.paimon.orphans.missing_manifests import MissingManifestsReport
    from lakeformat.paimon.orphans.orphan_report import OrphanReport
    from lakeformat.paimon.read.past_time import PastTime

__all__ = ["TableOrphans"]


class TableOrphans(TableReads):
    """The part of a table that tidies its files."""

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
        """Remove files that no snapshot, tag, branch or changelog leads to; ask first what goes.

        Only files last changed before ``older_than`` go: a time, or an age such as ``"2 d"``; by
        default a day before now or the newest commit, whichever is older. Writes under way make
        files nothing leads to yet, so a time within a day, or after ``running_since``, when the
        oldest of them began, is refused unless ``allow_younger`` says that nobody writes. Files of
        a writer that has made another one since stay, as do those of the messages ``in_use``. More
        than ``max_share`` of the table's files or bytes is refused. ``external_paths`` looks
        outside of the table too, where no other table may keep files. ``on_progress`` is called
        with every file. Files under names no writer gives stay.

        ``executor`` reads manifests and lists directories: ``"threads"`` as many as the option
        ``file-operation.thread-num`` says, ``"serial"``, or an object such as
        ``spark_jobs.SparkExecutor``. What goes is decided, and removed, in this process.
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
        """Take data files out of the table that are gone or cut short; ask first which.

        Their rows are lost, and every read of them fails until this is done. More than
        ``max_share`` of the files is refused: rather the storage is not the right one then.
        """
        from lakeformat.paimon.orphans.missing import remove_missing_files

        return remove_missing_files(
            self._handle, dry_run=dry_run, max_share=max_share, commit=commit
        )

    def remove_missing_manifests(self, dry_run: bool = True) -> MissingManifestsReport:
        """Take manifests out of the table that are not there any more; ask first which.

        The rows of the files that only they named are lost, and no snapshot can be read until
        this is done. Refused where one of them took files out, too: go back to a snapshot that is
        whole instead.
        """
        from lakeformat.paimon.orphans.missing_manifests import remove_missing_manifests

        return remove_missing_manifests(self._handle, dry_run=dry_run)

    def repair(self, dry_run: bool = False) -> RepairHintsReport:
        """Let the hints of every branch say which snapshots there are, and name missing ones."""
        from lakeformat.paimon.orphans.hints import repair_hints

        return repair_hints(self._handle, dry_run=dry_run)
