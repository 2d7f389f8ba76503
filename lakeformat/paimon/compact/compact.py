# SPDX-License-Identifier: Apache-2.0
"""Runs a whole compaction: plan, run, commit, and plan buckets again after a conflict."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event

from lakeformat.errors import CommitConflictError, InvalidRequestError, LakeError
from lakeformat.executor import Executor, has_idle_cores, where_to_work
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.changelogs.producers import guarantee
from lakeformat.paimon.compact.commit import Groups, Made
from lakeformat.paimon.compact.compact_report import BucketOutcome, CompactReport
from lakeformat.paimon.compact.identity import CompactIdentity, find_earlier_tries
from lakeformat.paimon.compact.newest_schema import under_schema
from lakeformat.paimon.compact.other_compactor import OtherCompactor, warn_of_other_compactor
from lakeformat.paimon.compact.outcomes import compacted, failed, not_chosen, refused, report_of
from lakeformat.paimon.compact.partition_choice import WHOLE_TABLE, Chosen, Places
from lakeformat.paimon.compact.plan import has_left_table, plan_compaction
from lakeformat.paimon.compact.run import UnitOutcome, UnitWork
from lakeformat.paimon.compact.unit import CompactPlan, CompactUnit, NotChosen
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress, OnUnit
from lakeformat.tables.driver import ATTEMPTS, Ended, Round, Steps, carry_out
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence

__all__ = ["OnUnit", "compact", "run_plans"]

_log = logging.getLogger(__name__)

_ROUNDS = 100
_UNFINISHED = {
    Ended.DONE: "",
    Ended.CONFLICTS: "other commits changed the same files {attempts} times in a row: compact "
    "again when fewer commits are made",
    Ended.ROUNDS: "buckets may still be due after {rounds} rounds: compact again",
}


def compact(
    handle: TableHandle,
    *,
    strategy: str = "full",
    chosen: Chosen = WHOLE_TABLE,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> CompactReport:
    """Compact a table; concurrent writers are not blocked and their commits are kept.

    Buckets that another commit changed meanwhile are planned again. If a unit of work fails, the
    other units still run; then the first LakeError is raised, with the report in its attribute
    ``report``. A retry with the same ``commit`` skips the work that earlier attempts have
    published, as long as their snapshots exist.
    """

    def plan(newest: TableHandle, places: Places | None) -> CompactPlan:
        return plan_compaction(newest, strategy=strategy, chosen=chosen.at(places))

    def ends_at_once(newest: TableHandle) -> bool:
        # A full compaction completes a keyed bucket in one round; an append table may need more
        # rounds.
        is_full = strategy == "full" or chosen.idle is not None
        rewrites_all = newest.options.compaction_force_rewrite_all_files
        return is_full and (bool(newest.schema.primary_keys) or rewrites_all)

    return run_plans(
        handle,
        strategy,
        plan,
        commit=commit,
        executor=executor,
        on_progress=on_progress,
        ends_at_once=ends_at_once,
    )


def run_plans(
    handle: TableHandle,
    strategy: str,
    plan: Callable[[TableHandle, Places | None], CompactPlan],
    *,
    commit: CommitId | None,
    executor: str | Executor | None,
    on_progress: OnUnit | None,
    ends_at_once: Callable[[TableHandle], bool],
) -> CompactReport:
    """Plan, run and commit in rounds until a plan has no unit of work.

    The compaction ends earlier after ``_ROUNDS`` rounds, or after too many conflicts. In the first
    round, ``plan`` gets None and plans all chosen buckets. Later rounds plan the buckets that
    conflicted with another commit, and buckets that have just received postponed rows. They also
    plan the buckets that were just compacted, unless ``ends_at_once`` returns True.

    Raise InvalidRequestError if ``on_progress`` cannot be called. If units fail, raise the first of
    their errors at the end.
    """
    if on_progress is not None and not callable(on_progress):
        raise InvalidRequestError(
            f"on_progress must be a function of one argument, got {on_progress!r}"
        )
    chosen = where_to_work(executor)
    identity = None if commit is None else find_earlier_tries(handle, commit)
    run = _BucketCompaction(handle, strategy, plan, chosen, on_progress, ends_at_once, identity)
    _log.info("%s compaction of %s begins", strategy, handle.uri)
    report = run.until_done()
    _log.info("%s compaction of %s ends: %s", strategy, handle.uri, report.reason)
    if run.failures:
        first = run.failures[0]
        error = type(first)(f"{sentence(first)} {_also(report)}")
        error.report = report
        raise error from first
    return report


@dataclass(slots=True)
class _BucketCompaction:
    handle: TableHandle
    strategy: str
    plan: Callable[[TableHandle, Places | None], CompactPlan]
    executor: str | Executor
    on_progress: OnUnit | None
    ends_at_once: Callable[[TableHandle], bool]
    identity: CompactIdentity | None = None
    failures: list[LakeError] = field(default_factory=list)
    _other: OtherCompactor | None = None
    _outcomes: list[BucketOutcome] = field(default_factory=list)
    _groups: list[Groups] = field(default_factory=list)
    _planned: CompactPlan | None = None
    _again: Places | None = None
    """The buckets that the next round plans; None in the first round, for all chosen buckets."""
    _progress: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    _plan_millis: int = 0
    _run_millis: int = 0

    def until_done(self) -> CompactReport:
        """Run rounds until no bucket is due or a limit is reached, and return the report.

        A bucket that needs no work is in the report once.
        """
        began = self._now()
        ended = carry_out(
            Steps(
                name=f"{self.strategy} compaction of {self.handle.uri}",
                head=head_of(self.handle),
                plan=self._plan_round,
                take=self._take,
                finish=self._finish,
                give_up=lambda: self._groups[-1].give_up(),
                discard=lambda outcome: delete_written(self.handle, outcome[1]),
                environment=self.handle.environment,
                executor=self.executor,
                rounds=_ROUNDS,
                must_finish=False,  # Most groups are published, so the report names the rest.
            )
        )
        return report_of(
            self.handle.uri,
            self.strategy,
            self._groups,
            self._outcomes,
            unfinished=_UNFINISHED[ended].format(attempts=ATTEMPTS, rounds=_ROUNDS) or None,
            guarantee=guarantee(self.handle.options),
            earlier=() if self.identity is None else self.identity.earlier,
            plan_millis=self._plan_millis,
            run_millis=self._run_millis,
            millis=self._now() - began,
            other=self._other,
        )

    def _plan_round(self) -> Round[CompactUnit, UnitOutcome] | None:
        began, is_first = self._now(), self._planned is None
        found = self.plan(self.handle, self._again)
        self.handle = under_schema(self.handle, found.schema_id)
        self._planned = found = self._without_made(found)
        self._plan_millis += self._now() - began
        if is_first:
            self._other = warn_of_other_compactor(self.handle)
            self._outcomes += map(not_chosen, found.not_chosen)
        if not found.units:
            return None
        self._groups.append(Groups(self.handle, self.identity))
        self._report_progress(planned=found)
        stop = Event()
        environment = replace(
            self.handle.environment,
            # A unit may use several cores if there are fewer units than cores.
            has_idle_cores=has_idle_cores(self.executor, len(found.units)),
            is_given_up=stop.is_set,
        )
        work = UnitWork(replace(self.handle, environment=environment))
        return Round(units=found.units, work=work, stop=stop)

    def _take(self, outcome: UnitOutcome) -> None:
        unit, messages, error, millis = outcome
        groups = self._groups[-1]
        self._run_millis += millis
        if messages:
            groups.add(Made(unit, messages, millis))
        elif error is not None and has_left_table(self.handle, unit):
            groups.refused.append((unit, error))
        elif error is not None:
            self.failures.append(error)
            self._outcomes.append(failed(unit, error))
        self._report_progress(done=unit)

    def _finish(self) -> bool:
        groups = self._groups[-1]
        groups.flush()
        self._outcomes += map(compacted, groups.published)
        self._outcomes += (refused(unit, error) for unit, error in groups.refused)
        self._again = self._places_to_plan(groups)
        if groups.refused:
            unit, error = groups.refused[-1]
            raise CommitConflictError(f"{unit.place}: {error}") from error
        return bool(self._again)

    def _without_made(self, plan: CompactPlan) -> CompactPlan:
        """Return the plan; if ``ends_at_once`` returns True, leave out the units that are done.

        A unit is done if an earlier attempt has published its work.
        """
        identity = self.identity
        if identity is None or not self.ends_at_once(self.handle):
            return plan
        identity.look()  # find what other attempts published before the plan
        if not identity.earlier:
            return plan
        due: list[CompactUnit] = []
        made: list[CompactUnit] = []
        for unit in plan.units:
            (made if identity.made(unit) else due).append(unit)
        left = (*plan.not_chosen, *map(_made_before, made))
        return replace(plan, units=tuple(due), not_chosen=left)

    def _places_to_plan(self, groups: Groups) -> Places:
        """Return the buckets that the next round plans.

        They are the buckets that conflicted with another commit, and those that received postponed
        rows. Compacted buckets are included unless ``ends_at_once`` returns True. Buckets that
        failed are left out.
        """
        assert self._planned is not None
        refused_places = {_place(unit) for unit, _ in groups.refused}
        done = {_place(made.unit) for made in groups.published}
        broken = {_place(unit) for unit in self._planned.units} - done - refused_places
        # Buckets that have just received postponed rows may be due for compaction.
        filled = {
            (made.unit.partition, bucket)
            for made in groups.published
            for bucket in range(made.unit.buckets or 0)
        }
        return (
            refused_places if self.ends_at_once(self.handle) else refused_places | done
        ) - broken | filled

    def _report_progress(
        self, *, planned: CompactPlan | None = None, done: CompactUnit | None = None
    ) -> None:
        progress = self._progress
        if planned is not None:
            progress[0] += len(planned.units)
            progress[2] += planned.bytes
        if done is not None:
            progress[1] += 1
            progress[3] += done.bytes
        if self.on_progress is not None:
            units, units_done, size, size_done = progress
            self.on_progress(
                CompactProgress(
                    table=self.handle.uri,
                    units=units,
                    done=units_done,
                    bytes=size,
                    bytes_done=size_done,
                )
            )

    def _now(self) -> int:
        return self.handle.environment.now_millis()


def _made_before(unit: CompactUnit) -> NotChosen:
    return NotChosen(
        path=unit.path,
        bucket=unit.bucket,
        files=len(unit.files),
        bytes=unit.bytes,
        reason="an earlier attempt of this compaction has done this work",
    )


def _place(unit: CompactUnit) -> tuple[bytes, int]:
    return (unit.partition, unit.bucket)


def _also(report: CompactReport) -> str:
    failed = {(each.partition, each.bucket) for each in report.buckets if each.outcome == "failed"}
    more = len(failed) - 1
    others = f"{counted(more, 'more bucket')} failed; " if more else ""
    return f"In all: {others}{report.reason}"
