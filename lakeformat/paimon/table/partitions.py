# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` for partitions, statistics, file indexes and manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.snapshot_positions import snapshot_number
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition

if TYPE_CHECKING:
    from lakeformat.paimon.analyze.analyze import OnRows
    from lakeformat.paimon.analyze.analyze_report import AnalyzeReport
    from lakeformat.paimon.file_indexes.file_index_report import FileIndexReport
    from lakeformat.paimon.file_indexes.rewrite import OnFiles
    from lakeformat.paimon.partitions.partition_reports import (
        DropPartitionsPlan,
        ExpirePartitionsReport,
        MarkDoneReport,
    )
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Partitions, PartitionSpec
    from lakeformat.tables.compact_manifests_report import CompactManifestsReport
    from lakeformat.tables.partition_rows import PartitionRows
    from lakeformat.tables.past_time import PastTime

__all__ = ["TablePartitions"]


class TablePartitions(TableReads):
    """The methods of ``Table`` for partitions, statistics, file indexes and manifests."""

    def check_partition_choice(
        self, *, where: Where | None = None, partitions: Partitions | None = None
    ) -> None:
        """Raise InvalidRequestError if ``where`` or ``partitions`` uses columns other than
        partition columns.
        """
        from lakeformat.paimon.compact.partition_choice import Chosen, chosen_partitions

        chosen_partitions(self.schema, Chosen(where=where, partitions=partitions))

    def explain_empty_choice(
        self, *, where: Where | None = None, partitions: Partitions | None = None
    ) -> str | None:
        """Return a sentence that names existing partitions if no chosen partition has rows.

        Return None if a chosen partition has rows, if the table is empty, or if neither argument
        chooses partitions.
        """
        from lakeformat.paimon.partitions.empty_choice import explain_empty_choice

        return explain_empty_choice(self._handle, where, partitions)

    def expire_partitions(
        self,
        *,
        expiration_time: PastTime | None = None,
        strategy: str | None = None,
        timestamp_pattern: str | None = None,
        timestamp_formatter: str | None = None,
        max_num: int | None = None,
        batch_size: int | None = None,
        dry_run: bool = False,
    ) -> ExpirePartitionsReport:
        """Delete the rows of partitions older than ``expiration_time``: ``"7 d"``, or a time.

        Missing arguments default to the options of the table, such as
        ``partition.expiration-time``. With the strategy ``values-time``, the age of a partition
        comes from its values. With ``update-time``, it comes from the time of its newest file, even
        if a compaction wrote this file. Partitions of unknown age are kept. Earlier snapshots keep
        the rows until these snapshots expire. If a run is interrupted, the next run finishes it.
        Raise InvalidRequestError if the table has no partition columns, or if no expiration time is
        set.
        """
        from lakeformat.paimon.partitions.expire import ExpireRequest, expire_partitions

        request = ExpireRequest(
            expiration_time=expiration_time,
            strategy=strategy,
            timestamp_pattern=timestamp_pattern,
            timestamp_formatter=timestamp_formatter,
            max_num=max_num,
            batch_size=batch_size,
        )
        return expire_partitions(self._handle, request, dry_run=dry_run)

    def touched_partitions(
        self, *, after: AnyPosition, upto: AnyPosition
    ) -> list[dict[str, str | None]]:
        """Return the partitions in which a range of snapshots added or deleted files.

        Each partition is a dict of its columns and values; a null value is None. The range starts
        with the snapshot after ``after``, and includes ``upto``. Expired snapshots are skipped. A
        partition that only a compaction rewrote is returned, too.
        """
        from lakeformat.paimon.partitions.touched import touched_partitions

        handle = self._handle
        first = snapshot_number(handle, "'after' must be a snapshot number", after)
        last = snapshot_number(handle, "'upto' must be a snapshot number", upto)
        return touched_partitions(handle, first, last)

    def plan_drop_partitions(self, partitions: Sequence[PartitionSpec]) -> DropPartitionsPlan:
        """Return the partitions that ``drop_partitions`` would delete; nothing is changed.

        The plan also has the specs of ``partitions`` that match no partition.
        """
        from lakeformat.paimon.partitions.drop import plan_drop_partitions

        return plan_drop_partitions(self._handle, partitions)

    def partition_rows(self, partition: PartitionSpec) -> PartitionRows:
        """Return the number of rows of each matching partition; nothing is changed."""
        from lakeformat.tables.partition_rows import PartitionRows

        plan = self.plan_drop_partitions([partition])
        return PartitionRows(plan.snapshot_id, {each.path: each.rows for each in plan.partitions})

    def mark_partitions_done(
        self,
        partitions: Sequence[PartitionSpec],
        *,
        actions: Sequence[str] | None = None,
        allow_empty: bool = False,
        dry_run: bool = False,
    ) -> MarkDoneReport:
        """Mark partitions as done, each named by the values of all partition columns.

        A repeated call is harmless. ``actions`` replaces the option ``partition.mark-done-action``:
        ``"success-file"`` writes ``_SUCCESS`` into the directory of the partition,
        ``"done-partition"`` creates a directory next to it, such as ``dt=2024-01-01.done``. A
        partition without rows raises NotFoundError unless ``allow_empty`` is set.
        """
        from lakeformat.paimon.partitions.mark_done import mark_partitions_done

        return mark_partitions_done(
            self._handle, partitions, actions=actions, allow_empty=allow_empty, dry_run=dry_run
        )

    @renamed_argument("tell", "on_progress")
    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnRows | None = None,
    ) -> AnalyzeReport:
        """Count the rows, and compute statistics of columns for query planners.

        ``columns`` names the columns, or is ``"all"``. Without ``columns``, the rows are only
        counted. The result is published in a snapshot of kind ANALYZE. ``$statistics`` shows the
        statistics, and later snapshots inherit them until the schema changes. ``on_progress`` is
        called with the number of rows read so far. Raise InvalidRequestError for an unknown column,
        and UnsupportedError for a type without statistics.
        """
        from lakeformat.paimon.analyze.analyze import analyze

        return analyze(
            self._handle, columns=columns, commit=commit, dry_run=dry_run, on_progress=on_progress
        )

    def compact_manifests(self, *, dry_run: bool = False) -> CompactManifestsReport:
        """Merge small manifests and drop entries of deleted files; data files do not change."""
        from lakeformat.paimon.commit.compact_manifests import compact_manifests

        return compact_manifests(self._handle, dry_run=dry_run)

    @renamed_argument("tell", "on_progress")
    def rewrite_file_indexes(
        self,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        force: bool = False,
        dry_run: bool = False,
        on_progress: OnFiles | None = None,
    ) -> FileIndexReport:
        """Create the indexes of the options ``file-index.*`` for existing files.

        Indexes that no option requests any more are removed. Data files do not change. Files of
        postponed rows (bucket -2) are left out. ``force`` also rebuilds existing indexes.
        ``on_progress`` is called with the number of files to change, and the number of finished
        files. Raise InvalidRequestError if ``force`` is set, but no option requests an index. Raise
        UnsupportedError for a table with ``row-tracking.enabled``.
        """
        from lakeformat.paimon.compact.partition_choice import Chosen
        from lakeformat.paimon.file_indexes.rewrite import rewrite_file_indexes

        return rewrite_file_indexes(
            self._handle,
            chosen=Chosen(where=where, partitions=partitions),
            force=force,
            dry_run=dry_run,
            on_progress=on_progress,
        )
