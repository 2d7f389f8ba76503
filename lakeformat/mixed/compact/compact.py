# SPDX-License-Identifier: Apache-2.0
"""Compacts a Mixed table: merges changes into the base store, and plans again after a conflict."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeformat.executor import Executor, where_to_work
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import PublishedChange, publish_change
from lakeformat.mixed.batch.begin import end_dead_batches
from lakeformat.mixed.compact.merge_commit import MergeCommit
from lakeformat.mixed.compact.plan import (
    LoadState,
    MergeUnit,
    MixedCompactPlan,
    plan_merge,
    require_mixed_strategy,
)
from lakeformat.mixed.compact.report import MixedCompactReport, merge_report, replayed_report
from lakeformat.mixed.compact.run import MergedUnit, discard_merged, merge_work
from lakeformat.mixed.stores.record_file import delete_unused_records
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress, OnUnit
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["compact_mixed"]

_log = logging.getLogger(__name__)


def compact_mixed(
    pair: StorePair,
    load: LoadState,
    strategy: str,
    *,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> MixedCompactReport:
    """Merge changes and small files into base files, in one commit; no row of the table changes.

    ``strategy`` is ``minor`` or ``full``. If an earlier call has published ``commit``, this call
    publishes nothing. After a conflict everything is planned again. Raise ``UnsupportedError`` if
    the base store does not have version 2 of the Iceberg format.
    """
    require_mixed_strategy(strategy)
    chosen = where_to_work(executor)
    pair.base.pointer.require_writable()
    earlier = earlier_commit(pair.base, pair.load_to_change().base, commit)
    if earlier is not None:
        assert earlier.snapshot is not None
        return replayed_report(pair.base.uri, strategy, earlier.snapshot)
    end_dead_batches(pair)
    report = _NodeCompaction(pair, load, strategy, commit, chosen, on_progress).until_done()
    _log.info("compaction of %s: %s", pair.base.uri, report.reason)
    return report


@dataclass(slots=True)
class _NodeCompaction:
    pair: StorePair
    load: LoadState
    strategy: str
    commit: CommitId | None
    executor: str | Executor
    on_progress: OnUnit | None
    _plan: MixedCompactPlan | None = None
    _made: list[MergedUnit] = field(default_factory=list)
    _done: Sequence[MergedUnit] = ()
    _published: PublishedChange | None = None

    def until_done(self) -> MixedCompactReport:
        """Plan and merge until the tasks of a plan are published, or nothing is due.

        Return the report.
        """
        carry_out(
            Steps(
                name=f"compaction of {self.pair.base.uri}",
                head=self._head,
                plan=self._plan_round,
                take=self._take,
                finish=self._finish,
                give_up=self._give_up,
                discard=self._discard,
                environment=self.pair.base.environment,
                executor=self.executor,
            )
        )
        assert self._plan is not None
        published = self._published
        snapshot: Snapshot | None = None if published is None else published.snapshot
        if published is not None and published.is_replayed and snapshot is not None:
            return replayed_report(self.pair.base.uri, self.strategy, snapshot)
        return merge_report(self._plan, self._done, snapshot)

    def _head(self) -> tuple[str, str]:
        return self.pair.base.load().metadata_file, self.pair.change.load().metadata_file

    def _plan_round(self) -> Round[MergeUnit, MergedUnit] | None:
        environment = self.pair.base.environment
        self._plan = plan = plan_merge(self.load, self.strategy, environment.now_millis())
        if plan.obstacle is not None:
            _log.warning("compaction of %s: %s", self.pair.base.uri, plan.obstacle)
        if not plan.is_due:
            return None
        self._report_progress()
        return Round(units=plan.units, work=merge_work(plan, environment))

    def _take(self, made: MergedUnit) -> None:
        self._made.append(made)
        self._report_progress()

    def _finish(self) -> None:
        """Publish the results of all tasks in one commit.

        If the commit fails, delete the new files of the tasks; if its outcome is unknown, keep
        them.
        """
        plan, made, self._made = self._plan, self._made, []
        assert plan is not None
        change = MergeCommit(plan, self.pair.change, made, self.pair.base.environment)
        with kept_if_published(lambda: self._delete(plan, made, change.records)):
            published = publish_change(
                self.pair.base, change, commit=self.commit, planned=plan.pair.base
            )
        if published.is_replayed:  # another process with the same identity published it meanwhile
            self._delete(plan, made, change.records)
        else:
            delete_unused_records(self.pair.base, change.records, published.snapshot)
        self._published, self._done = published, made

    def _give_up(self) -> None:
        made, self._made = self._made, []
        for each in made:
            self._discard(each)

    def _discard(self, made: MergedUnit) -> None:
        assert self._plan is not None
        discard_merged(self._plan.pair.base, made)

    def _delete(
        self, plan: MixedCompactPlan, made: Sequence[MergedUnit], records: Sequence[str]
    ) -> None:
        for each in made:
            discard_merged(plan.pair.base, each)
        delete_files(plan.pair.base.places, records)

    def _report_progress(self) -> None:
        plan = self._plan
        if self.on_progress is None or plan is None:
            return
        self.on_progress(
            CompactProgress(
                table=self.pair.base.uri,
                units=len(plan.units),
                done=len(self._made),
                bytes=plan.bytes,
                bytes_done=sum(each.unit.bytes for each in self._made),
            )
        )
