"""The whole of a compaction: plan, run, commit, and again where a commit was refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.executor import Executor, has_idle_cores, outcomes_of, where_to_work
from lakeformat.paimon.commit.abort import delete_written
from lakeformat.paimon.commit.identity import CommitId
from lakeformat.paimon.compact.changelogs.producers import guarantee
from lakeformat.paimon.compact.commit import Groups, Made
from lakeformat.paimon.compact.compact_report import BucketOutcome, CompactReport, Progress
from lakeformat.paimon.compact.identity import CompactIdentity, find_earlier_tries
from lakeformat.paimon.compact.other_compactor import OtherCompactor, warn_of_other_compactor
from lakeformat.paimon.compact.outcomes import compacted, failed, not_chosen, refused, report_of
from lakeformat.paimon.compact.plan import has_left_table, plan_compaction, under_schema
from lakeformat.paimon.compact.run import UnitOutcome, UnitWork
from lakeformat.paimon.compact.unit import CompactPlan, CompactUnit, NotChosen
from lakeformat.paimon.compact.where import Idle, Places
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.read.where import Partitions
from lakeformat.rows.conditions.filter import Where
from lakeformat.types.count_text import counted

__all__ = ["OnUnit", "compact", "run_plans"]

_log = logging.getLogger(__name__)

OnUnit = Callable[[Progress], None]
"""Is called after each unit with the progress of a compaction."""

_ROUNDS = 100
_CONFLICTS = 10
"""So often the same buckets are planned again before they are left to the next compaction."""


def compact(
    handle: TableHandle,
    *,
    strategy: str = "full",
    partitions: Partitions | None = None,
    where: Where | None = None,
    idle: Idle | None = None,
    buckets: Collection[int] | None = None,
    chosen: Places | None = None,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> CompactReport:
    """Compact a table; writers are neither blocked nor undone.

    ``chosen`` are exactly these buckets; rows of them that get their bucket are followed there.

    What another commit has changed meanwhile is planned again, alone. A unit that fails stops no
    other; its error is raised once the others are published, and has the ``report``. What an
    earlier try with the same ``commit`` has published is not done again.
    """

    def plan(newest: TableHandle, places: Places | None) -> CompactPlan:
        return plan_compaction(
            newest,
            strategy=strategy,
            partitions=partitions,
            where=where,
            idle=idle,
            buckets=buckets,
            places=chosen if places is None else places,
        )

    def ends_at_once(newest: TableHandle) -> bool:
        # A full compaction of a bucket with keys leaves nothing to do; packs of files may.
        is_full = strategy == "full" or idle is not None
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
    """Plan, run and commit until nothing is due; ``plan`` is asked for all buckets, then for some.

    ``ends_at_once``: whether a bucket that was compacted is not planned again.
    """
    if on_progress is not None and not callable(on_progress):
        raise InvalidRequestError(
            f"on_progress must be a function of one argument, got {on_progress!r}"
        )
    chosen = where_to_work(executor)
    identity = None if commit is None else find_earlier_tries(handle, commit)
    run = _Run(handle, strategy, chosen, on_progress, ends_at_once, identity)
    _log.info("%s compaction of %s begins", strategy, handle.uri)
    report = run.until_done(lambda places: plan(run.handle, places))
    _log.info("%s compaction of %s ends: %s", strategy, handle.uri, report.reason)
    if run.failures:
        first = run.failures[0]
        said = str(first).removesuffix(".")
        error = type(first)(f"{said}. {_also(len(run.failures) - 1, report)}")
        error.report = report
        raise error from first
    return report


@dataclass(slots=True)
class _Run:
    """What has happened so far."""

    handle: TableHandle
    strategy: str
    executor: str | Executor
    on_progress: OnUnit | None
    ends_at_once: Callable[[TableHandle], bool]
    identity: CompactIdentity | None = None
    failures: list[LakeError] = field(default_factory=list)
    _other: OtherCompactor | None = None
    _outcomes: list[BucketOutcome] = field(default_factory=list)
    _groups: list[Groups] = field(default_factory=list)
    _progress: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    _plan_millis: int = 0
    _run_millis: int = 0

    def until_done(self, plan: Callable[[Places | None], CompactPlan]) -> CompactReport:
        """Rounds until nothing is due: of buckets where nothing was done the first one tells."""
        began = self._now()
        places: Places | None = None
        conflicts = 0
        unfinished = f"more may be due after {_ROUNDS} rounds: compact again"
        for _ in range(_ROUNDS):
            before = self._now()
            found = self._planned(plan, places)
            self.handle = under_schema(self.handle, found.schema_id)
            found = self._without_made(found)
            self._plan_millis += self._now() - before
            if places is None:
                self._other = warn_of_other_compactor(self.handle)
                self._outcomes += map(not_chosen, found.not_chosen)
            if not found.units:
                unfinished = ""
                break
            groups = self._round(found)
            conflicts = conflicts + 1 if groups.refused else 0
            if conflicts > _CONFLICTS:
                unfinished = (
                    f"other commits changed the same files {conflicts} times in a row: compact "
                    "again while fewer of them are made"
                )
                break
            if not (places := self._again(found, groups)):
                unfinished = ""
                break
        return report_of(
            self.handle.uri,
            self.strategy,
            self._groups,
            self._outcomes,
            unfinished=unfinished or None,
            guarantee=guarantee(self.handle.options),
            earlier=() if self.identity is None else self.identity.earlier,
            plan_millis=self._plan_millis,
            run_millis=self._run_millis,
            millis=self._now() - began,
            other=self._other,
        )

    def _round(self, plan: CompactPlan) -> Groups:
        groups = Groups(self.handle, self.identity)
        self._groups.append(groups)
        self._tell(planned=plan)
        stop = Event()
        outcomes = self._started(plan.units, stop)
        try:
            for unit, messages, error, millis in outcomes:
                self._run_millis += millis
                if messages:
                    groups.add(Made(unit, messages, millis))
                elif error is not None and has_left_table(self.handle, unit):
                    groups.refused.append((unit, error))
                elif error is not None:
                    self.failures.append(error)
                    self._outcomes.append(failed(unit, error))
                self._tell(done=unit)
            groups.flush()
        except BaseException:
            stop.set()
            groups.give_up()
            for _, messages, _, _ in outcomes:
                delete_written(self.handle, messages)
            raise
        self._outcomes += map(compacted, groups.published)
        self._outcomes += (refused(unit, error) for unit, error in groups.refused)
        return groups

    def _planned(
        self, plan: Callable[[Places | None], CompactPlan], places: Places | None
    ) -> CompactPlan:
        """A plan of a snapshot that is still there."""
        return again_if_overtaken(self.handle, lambda: plan(places))

    def _without_made(self, plan: CompactPlan) -> CompactPlan:
        """Without what an earlier try has done, where doing it again would find it due again."""
        identity = self.identity
        if identity is None or not self.ends_at_once(self.handle):
            return plan
        identity.look()  # whatever the plan has seen of a twin's work is known from here on
        if not identity.earlier:
            return plan
        due: list[CompactUnit] = []
        made: list[CompactUnit] = []
        for unit in plan.units:
            (made if identity.made(unit) else due).append(unit)
        left = (*plan.not_chosen, *map(_made_before, made))
        return replace(plan, units=tuple(due), not_chosen=left)

    def _again(self, plan: CompactPlan, groups: Groups) -> Places:
        """The buckets to look at once more."""
        refused_places = {_place(unit) for unit, _ in groups.refused}
        done = {_place(made.unit) for made in groups.published}
        broken = {_place(unit) for unit in plan.units} - done - refused_places
        # What has got its bucket may be due there; other buckets have waited for that.
        filled = {
            (made.unit.partition, bucket)
            for made in groups.published
            for bucket in range(made.unit.buckets or 0)
        }
        return (
            refused_places if self.ends_at_once(self.handle) else refused_places | done
        ) - broken | filled

    def _started(self, units: Sequence[CompactUnit], stop: Event) -> Iterator[UnitOutcome]:
        environment = replace(
            self.handle.environment,
            # Units share the cores, or have one each.
            has_idle_cores=has_idle_cores(self.executor, len(units)),
            is_given_up=stop.is_set,
        )
        work = UnitWork(replace(self.handle, environment=environment))
        if not isinstance(self.executor, str):
            return self.executor.outcomes(work, units, stop)

        def unless_stopped(unit: CompactUnit) -> UnitOutcome:
            return (unit, (), None, 0) if stop.is_set() else work(unit)

        def lost(outcome: UnitOutcome) -> None:
            delete_written(self.handle, outcome[1])

        return outcomes_of(self.executor, unless_stopped, units, stop=stop, lost=lost)

    def _tell(self, *, planned: CompactPlan | None = None, done: CompactUnit | None = None) -> None:
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
                Progress(
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
        reason="an earlier try of this compaction has done it",
    )


def _place(unit: CompactUnit) -> tuple[bytes, int]:
    return (unit.partition, unit.bucket)


def _also(more: int, report: CompactReport) -> str:
    others = f"{counted(more, 'more unit')} failed; " if more else ""
    return f"In all: {others}{report.reason}"
