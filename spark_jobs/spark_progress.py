"""How far the tasks of a Spark job have come, told while it runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from spark_jobs.frames.parts import classic_context
from spark_jobs.progress import tell_progress

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["told_tasks"]

_LOOK_SECONDS = 1.0
_GROUP = "spark.jobGroup.id"


@contextmanager
def told_tasks(spark: SparkSession) -> Iterator[None]:
    """Say how many tasks are done, of the stages that have begun; Spark Connect does not tell."""
    context = classic_context(spark)
    if context is None:
        yield
        return
    given = context.getLocalProperty(_GROUP)
    group = given or f"lake-{uuid.uuid4()}"
    earlier = frozenset(context.statusTracker().getJobIdsForGroup(group))
    ended = Event()
    teller = Thread(target=_tell, args=(context, group, earlier, ended), daemon=True)
    teller.start()
    context.setLocalProperty(_GROUP, group)
    try:
        yield
    finally:
        context.setLocalProperty(_GROUP, given)  # type: ignore[arg-type]  # None takes it away
        ended.set()
        teller.join()
    _, count = _counted(context, group, earlier)
    tell_progress(count, count, "tasks")  # Spark's own count of what is done comes later


def _tell(context: SparkContext, group: str, earlier: frozenset[int], ended: Event) -> None:
    said = (0, 0)
    while not ended.wait(_LOOK_SECONDS):
        found = _counted(context, group, earlier)
        if found != said:
            tell_progress(*found, "tasks")
            said = found


def _counted(context: SparkContext, group: str, earlier: frozenset[int]) -> tuple[int, int]:
    """Tasks that are done, and all of the stages that have begun: others may be left out."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(n) for n in {*tracker.getJobIdsForGroup(group)} - earlier]
    numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [each for each in map(tracker.getStageInfo, numbers) if each is not None]
    begun = [each for each in stages if each.numActiveTasks or each.numCompletedTasks]
    done = sum(each.numCompletedTasks for each in begun)
    return done, sum(each.numTasks for each in begun)
