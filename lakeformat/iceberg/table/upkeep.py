# SPDX-License-Identifier: Apache-2.0
"""The methods of a table for its health, compaction, statistics and maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakeformat.executor import Executor
    from lakeformat.iceberg.analyze.analyze import OnRows
    from lakeformat.iceberg.analyze.report import IcebergAnalyzeReport, PartitionStatisticsReport
    from lakeformat.iceberg.compact.plan import CompactPlan
    from lakeformat.iceberg.compact.report import CompactReport
    from lakeformat.iceberg.deletes.report import CompactDeletesReport
    from lakeformat.iceberg.health import IcebergHealthReport
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Partitions
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_manifests_report import CompactManifestsReport
    from lakeformat.tables.compact_progress import OnUnit
    from lakeformat.tables.maintain import MaintainReport
    from lakeformat.tables.maintain.request import OnProgress
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableUpkeep"]


class TableUpkeep(TableHistory):
    """The methods of a table for its health, compaction, statistics and maintenance."""

    def health(self, *, time_travel: bool = True, unknown: bool = False) -> IcebergHealthReport:
        """Return numbers, a score, and reasons with advice, for the newest snapshot of the branch.

        Only metadata is read. With ``time_travel`` the manifests of older snapshots are read, too:
        the report then has the size of the files that only older snapshots need, and the number of
        metadata files. Raise ``UnsupportedError`` for ``unknown=True``.
        """
        from lakeformat.iceberg.health import check_health
        from lakeformat.iceberg.health.reasons import Cures

        if unknown:
            raise UnsupportedError(
                f"unknown=True does not work on {self.location}, an Iceberg table: "
                f"`lake orphans {self._loaded().places.argument}` or table.remove_orphans() lists "
                "the files that nothing refers to"
            )
        loaded, newest = self._loaded(), self.latest_snapshot()
        return check_health(
            loaded,
            None if newest is None else newest.snapshot,
            Cures(loaded.places.catalog_name or self.location),
            self._handle.environment.now_millis(),
            time_travel=time_travel,
        )

    def maintain(
        self,
        *,
        dry_run: bool = False,
        expire_consumers: PastTime | None = None,
        executor: str | Executor | None = None,
        on_progress: OnProgress | None = None,
    ) -> MaintainReport:
        """Maintain the table: compact its files, expire snapshots, remove orphan files.

        Each step does only work that is due by ``health()`` and the table properties. After a
        failed step the next step runs; the report has the error. The steps are:

        - ``compact_deletes``, with ``convert_equality`` if reads must compare many keys,
        - ``compact`` of the files that are due,
        - ``compact_manifests``,
        - expiry by the table properties,
        - removal of orphan files older than three days.

        If ``gc.enabled`` is false, no snapshot expires, and no orphan file is removed. Consumers
        are deleted only if they have made no progress since ``expire_consumers``: a time, or an
        age such as ``"2 d"``.
        ``obstacles`` of the report lists the remaining problems, each with advice. A ``dry_run``
        changes nothing and reports what each step would do. After an interruption, call the method
        again.
        """
        from lakeformat.iceberg.maintain import IcebergProgress, maintain
        from lakeformat.iceberg.table.consumers import consumers_of_branches
        from lakeformat.tables.maintain.request import MaintainRequest

        request = MaintainRequest(
            dry_run=dry_run,
            expire_consumers=expire_consumers,
            executor=executor,
            on_progress=on_progress,
            progress=IcebergProgress,
        )
        return maintain(self._handle, consumers_of_branches(self._handle), request)

    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnRows | None = None,
    ) -> IcebergAnalyzeReport:
        """Count the distinct values of ``columns``, for query planners.

        ``columns=None`` means all columns whose values can be counted. The rows of the newest
        snapshot are read once. The result is written to a file, as by Java's
        ``compute_table_stats``. The table metadata names the file; no snapshot is made. Spark and
        Trino read the file. Numbers above 4096 are estimates. If the snapshot already has these
        statistics, its rows are not read again. ``commit`` has no effect. ``on_progress`` is called
        with the number of rows read so far. A ``dry_run`` counts, but stores nothing. Raise
        ``InvalidRequestError`` for a column that does not exist or cannot be counted.
        """
        from lakeformat.iceberg.analyze.analyze import analyze

        return analyze(self._handle, columns, dry_run=dry_run, on_progress=on_progress)

    def analyze_partitions(
        self, *, commit: CommitId | None = None, dry_run: bool = False
    ) -> PartitionStatisticsReport:
        """Count the rows, files and deletes of each partition, for query planners.

        Only the manifests of the newest snapshot are read. The result is written to a file, as by
        Java's ``compute_partition_stats``. The table metadata names the file; no snapshot is made.
        If the snapshot already has these statistics, no manifest is read. ``commit`` has no effect.
        Raise ``InvalidRequestError`` for a table without partitions.
        """
        from lakeformat.iceberg.analyze.partition_statistics import analyze_partitions

        return analyze_partitions(self._handle, dry_run=dry_run)

    def plan_compaction(
        self,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        **options: Any,
    ) -> CompactPlan:
        """Return the groups of files that ``compact`` would rewrite, with reasons; no data file is
        read.

        Raise ``InvalidRequestError`` for an unknown or wrong option.
        """
        from lakeformat.iceberg.compact.options import compact_selection
        from lakeformat.iceberg.compact.plan import plan_compaction

        wanted = compact_selection(where, partitions, options, location=self.location)
        return plan_compaction(self._handle, wanted)

    def compact(
        self,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        commit: CommitId | None = None,
        executor: str | Executor | None = None,
        on_progress: OnUnit | None = None,
        **options: Any,
    ) -> CompactReport:
        """Merge files into fewer and larger ones, and apply delete files; reads return the same
        rows.

        ``where`` and ``partitions`` choose the files that may have matching rows. Whole files are
        rewritten, with the current columns and partitions. The ``strategy`` ``"minor"``, also named
        ``"binpack"``, rewrites the files that are due by the rules of Java's
        ``rewrite_data_files``. ``"full"`` rewrites files that are too large or too small, and all
        files with delete files; a single small file is kept. The default is ``"minor"``, or
        ``"full"`` if ``order_by`` is given.

        ``"sort"`` rewrites the same files as ``"minor"``, with rows sorted by the keys
        ``order_by``, such as ``["day(ts) desc", "id"]``, or by the sort order of the table.
        ``"zorder"`` sorts the rows along a Z-order curve of the columns in ``order_by``. ``"full"``
        with ``order_by`` sorts all files; ``order_strategy`` is then ``"order"`` (the default) or
        ``"zorder"``.

        The options are those of Java: ``target_file_bytes`` (by default the property
        ``write.target-file-size-bytes``), ``min_file_bytes`` and ``max_file_bytes`` (75% and 180%
        of the target), ``max_group_bytes`` (100 GiB), ``min_input_files`` (5; 2 for ``"full"``),
        ``delete_file_threshold`` (no limit; 1 for ``"full"``), ``delete_ratio_threshold`` (0.3) and
        ``rewrite_all`` (False). Sorted files have the further options ``compression_factor`` (1),
        ``var_length_contribution`` (8) and ``max_output_size``.

        By default all groups are published in one commit. ``partial_progress`` publishes groups
        when they are ready, in up to 10 commits, or in up to ``max_commits``. A group in conflict
        is then dropped, and ``unfinished`` of the report is set. Groups are rewritten in
        ``rewrite_job_order``, such as ``"bytes-desc"``, with ``max_concurrent_rewrites`` at a time.

        Writers are not blocked, and appends cause no conflict. If rows of the files are deleted in
        the meantime, everything is planned again, except with partial progress. Ten such conflicts
        in a row raise ``CommitConflictError``. A repeated call with the same ``commit`` publishes
        nothing again. ``executor`` is ``"threads"``, ``"serial"``, or an object such as
        ``spark_jobs.SparkExecutor``. ``on_progress`` is called after each group. Raise
        ``InvalidRequestError`` for an unknown or wrong option.
        """
        from lakeformat.iceberg.compact.compact import compact
        from lakeformat.iceberg.compact.options import compact_selection

        wanted = compact_selection(where, partitions, options, location=self.location)
        return compact(
            self._handle, wanted, commit=commit, executor=executor, on_progress=on_progress
        )

    def compact_manifests(self, *, dry_run: bool = False) -> CompactManifestsReport:
        """Merge small manifests, with entries sorted by partition; rows and data files do not
        change.

        The manifests of each partition spec are merged up to ``commit.manifest.target-size-bytes``,
        and entries of deleted files are dropped. Writers are not blocked. If no manifest is due,
        nothing is published. A ``dry_run`` only reports the manifests to merge.
        """
        from lakeformat.iceberg.compact_manifests.compact_manifests import compact_manifests

        return compact_manifests(self._handle, dry_run=dry_run)

    def compact_deletes(
        self,
        *,
        convert_equality: bool = False,
        rewrite_all: bool = False,
        commit: CommitId | None = None,
        dry_run: bool = False,
    ) -> CompactDeletesReport:
        """Replace delete files by new ones, usually fewer, that delete the same rows.

        Data files do not change. Delete files that apply to no data file are removed. The position
        deletes of a partition are merged, as the property ``write.delete.granularity`` requires; in
        version 3 they become deletion vectors. ``convert_equality`` also replaces equality deletes
        by positions: then the keys are compared once, and no longer by each read. ``rewrite_all``
        also rewrites position delete files that need no merge. A ``dry_run`` only reports the files
        to replace.

        Writers are not blocked; after a conflict everything is planned again, and ten conflicts in
        a row raise ``CommitConflictError``. A repeated call with the same ``commit`` publishes
        nothing again. Raise ``UnsupportedError`` if the equality deletes of a data file must be
        replaced, but its manifest does not store the file's number of rows.
        """
        from lakeformat.iceberg.deletes.compact_deletes import compact_deletes

        return compact_deletes(
            self._handle,
            convert_equality=convert_equality,
            rewrite_all=rewrite_all,
            commit=commit,
            dry_run=dry_run,
        )

    def other_compactor(self) -> None:
        """Return None, because another compaction at the same time does no harm: the later one
        plans again.
        """

    def explain_empty_choice(
        self, *, where: Where | None = None, partitions: Partitions | None = None
    ) -> str | None:
        """Return the reason why ``where`` and ``partitions`` choose no data file.

        None if they choose a file, or if both are None.
        """
        from lakeformat.iceberg.compact.plan import explain_empty_choice

        return explain_empty_choice(self._handle, where, partitions)
