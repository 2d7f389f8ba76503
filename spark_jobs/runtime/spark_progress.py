# SPDX-License-Identifier: Apache-2.0
"""Reports the progress of Spark's tasks while they run."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread, get_ident
from typing import TYPE_CHECKING

from spark_jobs.frames.parts import classic_context
from spark_jobs.runtime.progress import report_progress

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

__all__ = ["reporting_tasks"]

_LOOK_SECONDS = 1.0
_GROUP = "spark.jobGroup.id"


def reporting_tasks(spark: SparkSession) -> AbstractContextManager[None]:
    """Report, while the block runs, how many tasks of its started stages are done."""
    context = classic_context(spark)
    return _reporting_from_server(spark) if context is None else _reporting_from_tracker(context)


@contextmanager
def _reporting_from_server(spark: SparkSession) -> Iterator[None]:
    """Report the progress that a Spark Connect server sends every two seconds.

    Spark calls ``hear`` for every query of the session, in the thread that waits for the query. The
    thread of this block waits for the queries of the block, so ``hear`` ignores calls in other
    threads.
    """
    here = get_ident()
    counts: dict[str | None, tuple[int, int]] = {}

    def hear(
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        known = [*(stages or ())]
        found = (sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known))
        if get_ident() != here or not found[1] or counts.get(operation_id) == found:
            return
        counts[operation_id] = found
        finished, total = (sum(each) for each in zip(*counts.values(), strict=True))
        report_progress(finished, total, "tasks")

    spark.registerProgressHandler(hear)
    try:
        yield
    finally:
        spark.removeProgressHandler(hear)
    if counts:  # a query shorter than the server's first message reports nothing
        count = sum(total for _, total in counts.values())
        report_progress(count, count, "tasks")


@contextmanager
def _reporting_from_tracker(context: SparkContext) -> Iterator[None]:
    given = context.getLocalProperty(_GROUP)
    group = given or f"lake-{uuid.uuid4()}"
    earlier = frozenset(context.statusTracker().getJobIdsForGroup(group))
    ended = Event()
    reporter = Thread(target=_report_changes, args=(context, group, earlier, ended), daemon=True)
    reporter.start()
    context.setLocalProperty(_GROUP, group)
    try:
        yield
    finally:
        context.setLocalProperty(_GROUP, given)  # type: ignore[arg-type]  # None removes it
        ended.set()
        reporter.join()
    _, count = _counted(context, group, earlier)
    report_progress(count, count, "tasks")  # Spark updates its own count later


def _report_changes(
    context: SparkContext, group: str, earlier: frozenset[int], ended: Event
) -> None:
    reported = (0, 0)
    while not ended.wait(_LOOK_SECONDS):
        found = _counted(context, group, earlier)
        if found != reported:
            report_progress(*found, "tasks")
            reported = found


def _counted(context: SparkContext, group: str, earlier: frozenset[int]) -> tuple[int, int]:
    """Return the numbers of finished tasks and of all tasks in the started stages of the jobs in
    ``group``. Jobs in ``earlier`` are left out. Stages that have not started are not counted,
    because Spark may skip them.
    """
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(n) for n in {*tracker.getJobIdsForGroup(group)} - earlier]
    numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [each for each in map(tracker.getStageInfo, numbers) if each is not None]
    begun = [each for each in stages if each.numActiveTasks or each.numCompletedTasks]
    done = sum(each.numCompletedTasks for each in begun)
    return done, sum(each.numTasks for each in begun)
