# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` for its maintenance: health, compaction and rescaling."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.paimon.compact.compact import OnUnit
    from lakeformat.paimon.compact.compact_report import CompactReport
    from lakeformat.paimon.compact.other_compactor import OtherCompactor
    from lakeformat.paimon.compact.partition_choice import Idle
    from lakeformat.paimon.compact.rescaling.rescale_report import RescaleReport
    from lakeformat.paimon.compact.unit import CompactPlan
    from lakeformat.paimon.health import HealthReport
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Partitions
    from lakeformat.tables.maintain import MaintainReport
    from lakeformat.tables.maintain.request import OnProgress
    from lakeformat.tables.past_time import PastTime

__all__ = ["TableUpkeep"]


class TableUpkeep(TableReads):
    """The methods of ``Table`` for its maintenance: health, compaction and rescaling."""

    def health(self, *, time_travel: bool = True, unknown: bool = False) -> HealthReport:
        """Return the health: facts about the newest snapshot, a score, and reasons with advice.

        ``time_travel`` also reads every snapshot, tag and branch, to count the bytes of files that
        the newest snapshot does not need. ``unknown`` also lists the directories, to find orphan
        files, and missing or truncated files.
        """
        from lakeformat.paimon.health import check_health

        return check_health(self._handle, time_travel=time_travel, unknown=unknown)

    def maintain(
        self,
        *,
        dry_run: bool = False,
        expire_consumers: PastTime | None = None,
        executor: str | Executor | None = None,
        on_progress: OnProgress | None = None,
    ) -> MaintainReport:
        """Maintain the table: expire partitions, compact, expire snapshots, remove orphan files.

        Each step does what is due by the table options. A failed step does not stop the next; the
        report has its error. Partitions expire only with the option
        ``partition.expiration-time``. Due buckets are compacted in full. The snapshot expiry
        ignores the limit ``snapshot.expire.limit``. It deletes consumers only after
        ``consumer.expiration-time``, or if they have not moved since ``expire_consumers``: a time,
        or an age such as ``"2 d"``. Orphan files are removed as by ``remove_orphans`` with its
        default age.

        ``obstacles`` of the report lists what still prevents good health, and what to do about it.
        A ``dry_run`` changes nothing and reports what each step would do. After an interruption,
        repeat the call: finished steps have nothing left to do.
        """
        from lakeformat.paimon.maintain import maintain
        from lakeformat.tables.maintain.request import MaintainRequest

        request = MaintainRequest(
            dry_run=dry_run,
            expire_consumers=expire_consumers,
            executor=executor,
            on_progress=on_progress,
        )
        return maintain(self._handle, request)

    def plan_compaction(
        self,
        *,
        strategy: str = "full",
        where: Where | None = None,
        partitions: Partitions | None = None,
        idle: Idle | None = None,
        buckets: Collection[int] | None = None,
        order_by: Sequence[str] | None = None,
        order_strategy: str | None = None,
    ) -> CompactPlan:
        """Return what ``compact`` would do with each bucket, and why; nothing is changed.

        The arguments and errors are those of ``compact``.
        """
        from lakeformat.paimon.compact.newest_schema import under_schema
        from lakeformat.paimon.compact.other_compactor import find_other_compactor
        from lakeformat.paimon.compact.partition_choice import Chosen
        from lakeformat.paimon.compact.plan import plan_compaction
        from lakeformat.paimon.compact.sorting.sort import asked_order, plan_sort

        chosen = Chosen(where=where, partitions=partitions, idle=idle, buckets=buckets)
        if (order := asked_order(order_by, order_strategy, strategy, idle)) is not None:
            plan = plan_sort(self._handle, *order, chosen=chosen)
        else:
            plan = plan_compaction(self._handle, strategy=strategy, chosen=chosen)
        newest = under_schema(self._handle, plan.schema_id)
        return replace(plan, other_compactor=find_other_compactor(newest))

    def other_compactor(self) -> OtherCompactor | None:
        """Return the other program that also compacts the table; None if there is none.

        The program is recognised by a recent compaction without the mark of this library, on a
        table that is not ``write-only``. If this library compacts, too, commits of that program
        conflict, and its job fails.
        """
        from lakeformat.paimon.compact.newest_schema import newest_schema
        from lakeformat.paimon.compact.other_compactor import find_other_compactor
        from lakeformat.paimon.health.misread_options import without_misread

        return find_other_compactor(without_misread(newest_schema(self._handle)))

    def rescale(
        self,
        *,
        bucket: int | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
        dry_run: bool = False,
        executor: str | Executor | None = None,
    ) -> RescaleReport:
        """Rewrite partitions with another bucket count, each in a separate overwrite.

        Without ``bucket`` the table option ``bucket`` is used: set the option, then rescale. The
        argument does not change the option. If they differ, the rescaled partitions refuse added
        rows until you set the option to the same number; an overwrite is accepted. If the option is
        -2, pass the argument, and do not change the option: then no rows are refused.

        ``where`` and ``partitions`` choose partitions; ``dry_run`` only reports the plan. Rows
        added meanwhile are not lost: their partition is written again. Older snapshots remain
        readable. ``executor`` is ``"serial"`` (the default), ``"threads"``, or an object such as
        ``spark_jobs.SparkExecutor``; independent buckets are written in parallel. Raise
        UnsupportedError for a table with ``'bucket' = '-1'`` or with row ids, and
        InvalidRequestError for a partition that must be compacted first.
        """
        from lakeformat.paimon.compact.partition_choice import Chosen
        from lakeformat.paimon.compact.rescaling.rescale import rescale

        return rescale(
            self._handle,
            bucket=bucket,
            chosen=Chosen(where=where, partitions=partitions),
            dry_run=dry_run,
            executor=executor,
        )

    @renamed_argument("tell", "on_progress")
    def compact(
        self,
        *,
        strategy: str = "full",
        where: Where | None = None,
        partitions: Partitions | None = None,
        idle: Idle | None = None,
        buckets: Collection[int] | None = None,
        order_by: Sequence[str] | None = None,
        order_strategy: str | None = None,
        commit: CommitId | None = None,
        executor: str | Executor | None = None,
        on_progress: OnUnit | None = None,
    ) -> CompactReport:
        """Merge files into fewer and larger ones; the rows of the table do not change.

        The ``strategy`` ``"full"`` compacts every bucket completely; in a table without primary key
        it merges small files, even a few, but may keep large files. ``"minor"`` merges only the
        files that the table options select, in several rounds if needed. ``where`` and
        ``partitions`` choose partitions. ``idle``, such as ``"1 h"``, chooses partitions without
        writes for that time, and compacts them as with ``"full"``. ``buckets`` chooses buckets.
        Writers are not blocked. A unit of work is a bucket of a primary-key table, or some files of
        a table without primary key; units that conflict with a commit are planned again.
        ``executor`` is ``"threads"`` (the default), ``"serial"``, or an object such as
        ``spark_jobs.SparkExecutor``. ``on_progress`` is called after each unit. Raise
        InvalidRequestError for an unknown strategy or for arguments that contradict each other, and
        UnsupportedError for a table that cannot be compacted.

        ``order_by`` sorts the rows of a table without primary key, so that queries open fewer
        files: ``order_strategy`` is ``"order"`` (column after column), ``"zorder"`` or
        ``"hilbert"``.

        A bucket that fails does not stop the next. Its error is raised after the remaining buckets
        are published; ``report`` of the error has the result of each bucket. A compaction may
        publish several snapshots. A retry with the same ``commit`` resumes where the earlier
        attempt ended, and reports that attempt's snapshots as ``earlier_snapshot_ids``.
        """
        from lakeformat.paimon.compact.compact import compact
        from lakeformat.paimon.compact.partition_choice import Chosen
        from lakeformat.paimon.compact.sorting.sort import asked_order, sort_compact

        chosen = Chosen(where=where, partitions=partitions, idle=idle, buckets=buckets)
        if (order := asked_order(order_by, order_strategy, strategy, idle)) is not None:
            return sort_compact(
                self._handle,
                *order,
                chosen=chosen,
                commit=commit,
                executor=executor,
                on_progress=on_progress,
            )
        return compact(
            self._handle,
            strategy=strategy,
            chosen=chosen,
            commit=commit,
            executor=executor,
            on_progress=on_progress,
        )
