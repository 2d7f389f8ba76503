# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table that plan and run an optimizing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakeformat.errors import InvalidRequestError
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table.mixed_history import mixed_history
from lakeformat.tables.table import Table

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.mixed.compact.plan import MixedCompactPlan
    from lakeformat.mixed.compact.report import MixedCompactReport
    from lakeformat.mixed.optimizing.plan import OptimizingPlan
    from lakeformat.mixed.optimizing.settings import OptimizingSettings
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_progress import OnUnit
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.position import AnyPosition

__all__ = ["TableOptimizing"]


class TableOptimizing(Table):
    """The methods of a Mixed table that plan and run an optimizing."""

    def __init__(self, pair: StorePair) -> None:
        self._pair = pair

    def plan_optimizing(
        self,
        *,
        settings: OptimizingSettings | None = None,
        snapshot: AnyPosition | None = None,
        last_minor: Moment | None = None,
        last_full: Moment | None = None,
    ) -> OptimizingPlan:
        """Return the plan that Amoro's optimizer would make, without changing the table.

        Only metadata is read. The plan has a decision about each partition with its reason, and
        tasks with their files. ``settings`` are by default the table properties. ``last_minor`` and
        ``last_full`` are the times of the newest runs, which only Amoro's service stores; by
        default both are the time of the newest optimizing commit of the base store. ``snapshot``
        plans an earlier state. Raise ``InvalidRequestError`` for a time before 1970.
        """
        from lakeformat.mixed.optimizing.plan import plan_optimizing
        from lakeformat.mixed.optimizing.settings import OptimizingSettings
        from lakeformat.mixed.table.find_state import find_state
        from lakeformat.mixed.table.newest_runs import last_runs

        pair = self._pair.load()
        history = mixed_history(pair)
        state = find_state(pair, history, snapshot=snapshot)
        known = last_runs(history)
        return plan_optimizing(
            state,
            settings or OptimizingSettings.of(state.base.metadata.properties),
            replace(
                known,
                minor=_time_of_run("last_minor", last_minor, known.minor),
                full=_time_of_run("last_full", last_full, known.full),
            ),
            self._pair.base.environment.now_millis(),
        )

    def plan_compaction(self, *, strategy: str = "minor", **options: Any) -> MixedCompactPlan:
        """Return the tasks that ``compact`` would carry out, with the decision about each
        partition.

        Only metadata is read. Errors as in ``compact``.
        """
        from lakeformat.mixed.compact.plan import plan_merge, require_mixed_strategy
        from lakeformat.mixed.table.newest_runs import newest_runs

        self._require_options("compact", self.plan_compaction, options)
        require_mixed_strategy(strategy)
        now_millis = self._pair.base.environment.now_millis()
        return plan_merge(lambda: newest_runs(self._pair), strategy, now_millis)

    def compact(
        self,
        *,
        strategy: str = "minor",
        commit: CommitId | None = None,
        executor: str | Executor | None = None,
        on_progress: OnUnit | None = None,
        **options: Any,
    ) -> MixedCompactReport:
        """Merge changes into the base store, and small files into larger ones; no row changes.

        ``"minor"`` does what is due by the table properties, as ``plan_optimizing`` shows it: a
        minor, a major or a full optimizing of each partition. ``"full"`` rewrites all files of
        every partition that has changes, deletes or too many small files. With
        ``self-optimizing.full.rewrite-all-files=false`` it rewrites only changes, small files, and
        files with deletes. All tasks are published in one commit of the base store, with the record
        of the merged changes.

        Writers are not blocked. If another commit merges changes or adds rows to the same
        partitions of the base store in the meantime, everything is planned again. While a batch has
        begun but not committed, only changes before the batch are merged.

        A repeated call with the same ``commit`` publishes nothing again. ``executor`` is
        ``"threads"``, ``"serial"``, or an object such as ``spark_jobs.SparkExecutor``.
        ``on_progress`` is called after each task. Raise ``InvalidRequestError`` for an unknown
        strategy, and ``UnsupportedError`` if the base store does not have version 2 of the Iceberg
        format.
        """
        from lakeformat.mixed.compact.compact import compact_mixed
        from lakeformat.mixed.table.newest_runs import newest_runs

        self._require_options("compact", self.compact, options)
        return compact_mixed(
            self._pair,
            lambda: newest_runs(self._pair),
            strategy,
            commit=commit,
            executor=executor,
            on_progress=on_progress,
        )

    def other_compactor(self) -> None:
        """Return None: a compaction and an optimizing of Amoro cannot damage each other's
        results.
        """

    def explain_empty_choice(self, **chosen: Any) -> None:
        """Return None: a compaction of a Mixed table takes no choice of partitions."""


def _time_of_run(name: str, given: Moment | None, known: int) -> int:
    """Return the time ``given`` in epoch milliseconds; if it is None, return ``known``.

    ``name`` is the name of the argument, for the message. Raise ``InvalidRequestError`` for a time
    before 1970.
    """
    from lakeformat.tables.moment import to_millis

    if given is None:
        return known
    millis = to_millis(given)
    if millis < 0:
        raise InvalidRequestError(
            f"{name} is {given!r}, which is a time before 1970: pass the time of the newest run in "
            "epoch milliseconds, as an ISO 8601 text or as a datetime, or leave it out"
        )
    return millis
