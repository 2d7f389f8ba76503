# SPDX-License-Identifier: Apache-2.0
"""Compacts a table: plan, rewrite, publish in one commit, and plan again after a conflict."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from threading import Event

from lakeformat.executor import Executor, has_idle_cores, where_to_work
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.commit import replace_units
from lakeformat.iceberg.compact.options import Wanted
from lakeformat.iceberg.compact.plan import CompactPlan, CompactUnit, plan_compaction
from lakeformat.iceberg.compact.report import (
    CompactReport,
    GroupOutcomes,
    Times,
    compact_report,
)
from lakeformat.iceberg.compact.run import RewrittenUnit, unit_work
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import PublishedChange, publish_change
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress, OnUnit
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["compact"]

_log = logging.getLogger(__name__)


def compact(
    handle: TableHandle,
    wanted: Wanted,
    *,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> CompactReport:
    """Replace files by fewer and larger ones with the same rows; writers are not blocked.

    The same ``commit`` publishes once. After a conflict everything is planned again.
    """
    chosen = where_to_work(executor)
    handle.pointer.require_writable()
    if (earlier := earlier_commit(handle, handle.load(), commit)) is not None:
        return _replayed(handle.uri, wanted, earlier)
    _log.info("compaction of %s begins", handle.uri)
    report = _Compaction(handle, wanted, commit, chosen, on_progress).until_done()
    _log.info("compaction of %s ends: %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _Compaction:
    """One compaction from its first plan to its report."""

    handle: TableHandle
    wanted: Wanted
    commit: CommitId | None
    executor: str | Executor
    on_progress: OnUnit | None
    _plan: CompactPlan | None = None
    _made: list[RewrittenUnit] = field(default_factory=list)
    """The rewritten groups that are not published yet."""
    _published: PublishedChange | None = None
    _done: list[RewrittenUnit] = field(default_factory=list)
    _times: Times = field(default_factory=Times)

    def until_done(self) -> CompactReport:
        """Compact until a plan is published, or has nothing to do."""
        began = self._now()
        carry_out(
            Steps(
                name=f"compaction of {self.handle.uri}",
                head=lambda: self.handle.load().metadata_file,
                plan=self._plan_round,
                take=self._take,
                finish=self._finish,
                give_up=self._give_up,
                discard=self._delete,
                environment=self.handle.environment,
                executor=self.executor,
            )
        )
        self._times.millis = self._now() - began
        published, not_chosen = self._published, () if self._plan is None else self._plan.not_chosen
        if published is not None and published.is_replayed:
            return _replayed(self.handle.uri, self.wanted, published)
        snapshot = None if published is None else published.snapshot
        removed = "0" if snapshot is None else snapshot.summary.get("removed-delete-files", "0")
        return compact_report(
            self.handle.uri,
            self.wanted.strategy,
            None if snapshot is None else snapshot.snapshot_id,
            int(removed),
            GroupOutcomes(self._done, not_chosen),
            self._times,
        )

    def _plan_round(self) -> Round[CompactUnit, RewrittenUnit] | None:
        began = self._now()
        self._plan = plan = plan_compaction(self.handle, self.wanted)
        self._times.rounds += 1
        self._times.plan_millis += self._now() - began
        if not plan.units:
            return None
        self._report_progress()
        stop = Event()
        environment = replace(
            self.handle.environment,
            has_idle_cores=has_idle_cores(self.executor, len(plan.units)),
            is_given_up=stop.is_set,
        )
        return Round(units=plan.units, work=unit_work(plan, environment), stop=stop)

    def _take(self, made: RewrittenUnit) -> None:
        self._made.append(made)
        self._report_progress()

    def _report_progress(self) -> None:
        if self.on_progress is None:
            return
        assert self._plan is not None
        self.on_progress(
            CompactProgress(
                table=self.handle.uri,
                units=len(self._plan.units),
                done=len(self._made),
                bytes=self._plan.bytes,
                bytes_done=sum(each.unit.group.bytes for each in self._made),
            )
        )

    def _finish(self) -> None:
        """Publish all groups; after a commit without an outcome their files are kept."""
        made = [*self._made]
        self._made.clear()
        if not made:
            return
        assert self._plan is not None
        began = self._now()
        change = replace_units(self._plan, made)
        with kept_if_published(lambda: self._delete(*made)):
            published = publish_change(self.handle, change, commit=self.commit)
        if published.is_replayed:  # by another process, while this one wrote
            self._delete(*made)
        self._times.commit_millis += self._now() - began
        self._published, self._done = published, made

    def _give_up(self) -> None:
        self._delete(*self._made)
        self._made.clear()

    def _delete(self, *made: RewrittenUnit) -> None:
        assert self._plan is not None
        for each in made:
            delete_files(self._plan.loaded.places, each.paths)

    def _now(self) -> int:
        return self.handle.environment.now_millis()


def _replayed(table: str, wanted: Wanted, published: PublishedChange) -> CompactReport:
    assert published.snapshot is not None
    found = published.snapshot.snapshot_id
    return CompactReport(
        table=table,
        strategy=wanted.strategy,
        snapshot_ids=(),
        earlier_snapshot_ids=(found,),
        reason=f"already published as snapshot {found}; no action needed",
    )
