"""What keeps a table in shape: compaction, and how it fares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.deprecation import renamed_argument
from lakeformat.executor import Executor
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.read.where import Partitions
from lakeformat.paimon.table.reads import TableReads
from lakeformat.rows.conditions.filter import Where

if TYPE_CHECKING:
    from lakeformat.paimon.compact.compact import OnUnit
    from lakeformat.paimon.compact.compact_report import CompactReport
    from lakeformat.paimon.compact.other_compactor import OtherCompactor
    from lakeformat.paimon.compact.partition_choice import Idle
    from lakeformat.paimon.compact.rescaling.rescale_report import RescaleReport
    from lakeformat.paimon.compact.unit import CompactPlan
    from lakeformat.paimon.health import HealthReport
    from lakeformat.paimon.maintain import MaintainReport
    from lakeformat.paimon.maintain.request import OnProgress
    from lakeformat.paimon.read.past_time import PastTime

__all__ = ["TableUpkeep"]


class TableUpkeep(TableReads):
    """The half of a table that nobody asks for rows."""

    def health(self, *, time_travel: bool = True, unknown: bool = False) -> HealthReport:
        """Facts about the newest snapshot, a score, and a verdict with reasons and advice.

        ``time_travel`` looks at every snapshot, tag and branch for the bytes they alone keep,
        ``unknown`` lists the directories for files nothing refers to, and for such as are gone or
        cut short.
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
        """Bring the table into good health: partitions, compaction, expiry, orphan files.

        Each step does what is due by the table's own options, and a step that fails stops no
        other; the report has its error. Full compaction of the buckets that are due; expiry
        without ``snapshot.expire.limit``; only files older than a day are orphans. Partitions
        expire only where ``partition.expiration-time`` is set. Consumers are deleted only after
        ``consumer.expiration-time``, or if they have not moved since ``expire_consumers``: a time,
        or an age such as ``"2 d"``.

        ``obstacles`` of the report says what still stands in the way, and what to do about it.
        A ``dry_run`` changes nothing and reports what each step would do. Repeat an interrupted
        run to do the rest.
        """
        from lakeformat.paimon.maintain import maintain
        from lakeformat.paimon.maintain.request import MaintainRequest

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
        """What ``compact`` would do now, bucket by bucket, and why; nothing is changed."""
        from lakeformat.paimon.compact.other_compactor import find_other_compactor
        from lakeformat.paimon.compact.partition_choice import Chosen
        from lakeformat.paimon.compact.plan import plan_compaction, under_schema
        from lakeformat.paimon.compact.sorting.sort import asked_order, plan_sort

        chosen = Chosen(where=where, partitions=partitions, idle=idle, buckets=buckets)
        if (order := asked_order(order_by, order_strategy, strategy, idle)) is not None:
            plan = plan_sort(self._handle, *order, chosen=chosen)
        else:
            plan = plan_compaction(self._handle, strategy=strategy, chosen=chosen)
        newest = under_schema(self._handle, plan.schema_id)
        return replace(plan, other_compactor=find_other_compactor(newest))

    def other_compactor(self) -> OtherCompactor | None:
        """Return the program that compacts the table besides this one, None if there is none.

        It is found by a recent compaction without the mark of ours, on a table that is not
        ``write-only``. Where both compact, the commits of that writer conflict and its job fails.
        """
        from lakeformat.paimon.compact.other_compactor import find_other_compactor
        from lakeformat.paimon.compact.plan import newest_schema
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
        """Write partitions anew with another number of buckets, each in an overwrite of its own.

        Without ``bucket`` it is that of the table's options: set option ``bucket``, then rescale.
        ``where`` and ``partitions`` choose partitions; ``dry_run`` says what would be done.
        Rows that come in meanwhile are not lost: their partition is written once more. Writers
        with the old number are refused from then on; older snapshots stay readable.
        ``executor`` is ``"serial"``, which is the default, ``"threads"``, or an object such as
        ``spark_jobs.SparkExecutor``; buckets that share no row are written at the same time.
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
        """Merge files into fewer and larger ones; the rows of the table stay as they are.

        ``full`` brings every bucket into its best shape, ``minor`` does what is due, as often as
        something is. ``where`` and ``partitions`` choose partitions, ``idle`` those nobody has
        written to for so long (``"1 h"``), always in full, ``buckets`` some buckets of them.
        Writers go on meanwhile; what they overtake is planned again. ``executor`` is
        ``"threads"``, a bucket per CPU at a time, ``"serial"``, or an object such as
        ``spark_jobs.SparkExecutor``; ``on_progress`` is called after each unit.

        ``order_by`` sorts rows without primary key, so that queries open fewer files:
        ``order_strategy`` is ``"order"``, column after column, ``"zorder"`` or ``"hilbert"``.
        A bucket that fails stops no other: its error is raised when the others are published, and
        its ``report`` says what became of each.

        A compaction publishes several snapshots. Tried again with the same ``commit``, it goes on
        where the earlier try ended, and reports that one's snapshots as ``earlier_snapshot_ids``.
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
