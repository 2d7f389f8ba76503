# SPDX-License-Identifier: Apache-2.0
"""Compacts a table: plans, rewrites files, commits, and plans again after a conflict."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from threading import Event

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.executor import Executor, has_idle_cores, where_to_work
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.commit import GroupCommits, earlier_parts
from lakeformat.iceberg.compact.options import CompactSelection
from lakeformat.iceberg.compact.plan import CompactUnit, plan_compaction
from lakeformat.iceberg.compact.report import (
    CompactReport,
    GroupOutcomes,
    Times,
    compact_report,
)
from lakeformat.iceberg.compact.run import RewrittenUnit, unit_work
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress, OnUnit
from lakeformat.tables.driver import Round, Steps, carry_out

__all__ = ["compact"]

_log = logging.getLogger(__name__)


def compact(
    handle: TableHandle,
    wanted: CompactSelection,
    *,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> CompactReport:
    """Rewrite data files into files of the target size with the same rows; writers are not blocked.

    A repeated call with the same ``commit`` publishes nothing twice. Without partial progress,
    everything is planned again after a conflict; ten conflicts in a row raise
    ``CommitConflictError``. With partial progress, nothing is planned again: the groups in conflict
    keep their old files. Raise ``InvalidRequestError`` for options that do not fit the table or the
    executor.
    """
    chosen = where_to_work(executor)
    if wanted.options.max_concurrent_rewrites is not None and not isinstance(chosen, str):
        raise InvalidRequestError(
            "max_concurrent_rewrites limits threads, but this executor uses none: leave it "
            "out. The executor itself limits how many groups it works on at a time"
        )
    handle.pointer.require_writable()
    if (earlier := earlier_commit(handle, handle.load(), commit)) is not None:
        assert earlier.snapshot is not None
        return _replayed(handle.uri, wanted, earlier.snapshot)
    _log.info("compaction of %s begins", handle.uri)
    report = _FileGroupCompaction(handle, wanted, commit, chosen, on_progress).until_done()
    _log.info("compaction of %s ends: %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _FileGroupCompaction:
    handle: TableHandle
    wanted: CompactSelection
    commit: CommitId | None
    executor: str | Executor
    on_progress: OnUnit | None
    _groups: GroupCommits | None = None
    """The groups of the newest plan; None before the first plan."""
    _earlier: list[int] = field(default_factory=list)
    """Snapshots in which an earlier attempt published a part of the work."""
    _times: Times = field(default_factory=Times)

    def until_done(self) -> CompactReport:
        """Compact until the groups of a plan are published, or no file needs to be rewritten.

        If the compaction fails after some commits, the attribute ``report`` of the error describes
        these commits.
        """
        began = self._now()
        most = self.wanted.options.most_commits
        steps = Steps(
            name=f"compaction of {self.handle.uri}",
            head=lambda: self.handle.load().metadata_file,
            plan=self._plan_round,
            take=self._take,
            finish=lambda: self._planned.finish(),
            give_up=lambda: self._planned.give_up(),
            discard=lambda made: self._planned.delete(made),
            environment=self.handle.environment,
            executor=self.executor,
            rounds=None if most is None else 1,
            at_a_time=self.wanted.options.max_concurrent_rewrites,
        )
        try:
            carry_out(steps)
        except LakeError as error:
            if self._groups is not None and self._groups.done:
                error.report = self._report(self._now() - began)
            raise
        return self._report(self._now() - began)

    @property
    def _planned(self) -> GroupCommits:
        assert self._groups is not None
        return self._groups

    def _report(self, millis: int) -> CompactReport:
        self._times.millis = millis
        groups = self._planned
        if groups.completed is not None and not groups.published:
            return _replayed(self.handle.uri, self.wanted, groups.completed)
        self._times.commit_millis += groups.millis
        return compact_report(
            self.handle.uri,
            self.wanted.strategy,
            [each.snapshot for each in groups.published if each.snapshot is not None],
            self._earlier,
            GroupOutcomes(
                groups.plan, groups.done, groups.dropped, groups.repeated, groups.completed
            ),
            self._times,
        )

    def _plan_round(self) -> Round[CompactUnit, RewrittenUnit] | None:
        began = self._now()
        handle, options = self.handle, self.wanted.options
        self._earlier = earlier_parts(handle.load().metadata, handle.branch, self.commit)
        plan = plan_compaction(handle, self.wanted, without=self._earlier)
        if self._groups is not None:
            self._times.commit_millis += self._groups.millis
        self._groups = GroupCommits(handle, plan, self.commit, options.most_commits)
        self._times.rounds += 1
        self._times.plan_millis += self._now() - began
        if not plan.units:
            return None
        self._report_progress()
        stop = Event()
        at_a_time = min(len(plan.units), options.max_concurrent_rewrites or len(plan.units))
        environment = replace(
            handle.environment,
            has_idle_cores=has_idle_cores(self.executor, at_a_time),
            is_given_up=stop.is_set,
        )
        return Round(units=plan.units, work=unit_work(plan, environment), stop=stop)

    def _take(self, made: RewrittenUnit) -> None:
        self._planned.add(made)
        self._report_progress()

    def _report_progress(self) -> None:
        if self.on_progress is None:
            return
        groups = self._planned
        self.on_progress(
            CompactProgress(
                table=self.handle.uri,
                units=len(groups.plan.units),
                done=len(groups.taken),
                bytes=groups.plan.bytes,
                bytes_done=sum(each.unit.group.bytes for each in groups.taken),
            )
        )

    def _now(self) -> int:
        return self.handle.environment.now_millis()


def _replayed(table: str, wanted: CompactSelection, published: Snapshot) -> CompactReport:
    found = published.snapshot_id
    return CompactReport(
        table=table,
        strategy=wanted.strategy,
        snapshot_ids=(),
        earlier_snapshot_ids=(found,),
        reason=f"already published as snapshot {found}; no action needed",
    )
