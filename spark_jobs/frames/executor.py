# SPDX-License-Identifier: Apache-2.0
"""Runs units of work in Spark tasks; the executors ``threads`` and ``serial`` run units in this
process.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from spark_jobs.frames.parts import classic_context, pack, spread, tasks_at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkExecutor"]

T = TypeVar("T")
R = TypeVar("R")

# Units share a task, because each task is a job of its own, which costs the JVM and the worker a
# third of a second of CPU time.
_TASK_BYTES, _LEAST_BYTES = 256 << 20, 1 << 20
_LOOK_SECONDS = 0.2


class SparkExecutor:
    """Runs units of work in Spark tasks: ``table.compact(executor=SparkExecutor(spark))``.

    ``table.rescale``, ``table.remove_orphans`` and ``table.check`` also take this executor. Small
    units share a task. The largest tasks run first, and the results of a task are returned when it
    ends. The table with its storage options is pickled into the tasks, so that no plan or web page
    of Spark shows the options.
    """

    def __init__(self, spark: SparkSession, *, at_once: int | None = None) -> None:
        """Run at most ``at_once`` tasks at a time. Default: the default parallelism of the session;
        64 with Spark Connect.
        """
        self._spark = spark
        self._at_once = at_once

    def __repr__(self) -> str:
        return f"SparkExecutor({self._spark!r})"

    def outcomes(self, work: Callable[[T], R], units: Sequence[T], stop: Event) -> Iterator[R]:
        """Yield the result of each unit when its task ends; stop all tasks when ``stop`` is set.

        The files of a stopped task remain as orphans.
        """
        at_once = self._at_once or tasks_at_once(self._spark)
        sizes = [(unit, int(getattr(unit, "bytes", 0))) for unit in units]
        parts = pack(sizes, at_once=at_once, target_bytes=_TASK_BYTES, least_bytes=_LEAST_BYTES)
        if parts:
            yield from _TaggedJobs(self._spark, work, stop).results(parts, min(at_once, len(parts)))


class _TaggedJobs:
    """Runs each part, a list of units, as a separate Spark job, which has a single task.

    So the results of a part arrive when its task ends. All these jobs have the same tag, by which
    Spark stops them together.
    """

    def __init__(self, spark: SparkSession, work: Callable[[Any], Any], stop: Event) -> None:
        self._spark = spark
        self._work = work
        self._stop = stop
        self._ended = Event()
        self._tag = f"lake-{uuid.uuid4()}"

    def results(self, parts: Sequence[Sequence[Any]], at_once: int) -> Iterator[Any]:
        pool = ThreadPoolExecutor(at_once, thread_name_prefix="lake-spark")
        running = {pool.submit(_inheriting(self._spark, self._job), part) for part in parts}
        try:
            while running:
                done, running = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    yield from self._results_of(future)
                if self._stop.is_set():
                    self._interrupt()
        finally:
            self._interrupt()
            pool.shutdown(wait=False, cancel_futures=True)
            # Spark can only stop a job after it has started.
            while begun := [future for future in running if not future.done()]:
                wait(begun, _LOOK_SECONDS)
                self._interrupt()

    def _job(self, part: Sequence[Any]) -> list[bytes]:
        if self._ended.is_set() or self._stop.is_set():
            return []
        self._add_tag()
        answers = spread(self._spark, [part], partial(_run_units, self._work), "outcome binary")
        return [bytes(answer.outcome) for answer in answers.collect()]

    def _results_of(self, future: Future[list[bytes]]) -> Iterator[Any]:
        try:
            answers = future.result()
        except Exception:
            if self._stop.is_set():
                return  # the job was stopped
            raise
        yield from map(pickle.loads, answers)

    def _add_tag(self) -> None:
        """Tag the job in the thread that starts it, because a classic session has separate
        tags for each thread.
        """
        if (context := classic_context(self._spark)) is None:
            self._spark.addTag(self._tag)
        else:
            context.addJobTag(self._tag)

    def _interrupt(self) -> None:
        self._ended.set()
        if (context := classic_context(self._spark)) is None:
            self._spark.interruptTag(self._tag)
        else:
            context.cancelJobsWithTag(self._tag)


def _inheriting(spark: SparkSession, target: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``target`` for another thread, with the job group and scheduler pool of this thread.

    Spark keeps both separately for each thread.
    """
    from pyspark.util import inheritable_thread_target

    wrap: Any = inheritable_thread_target(spark)
    wrapped: Callable[..., Any] = wrap(target)
    return wrapped


def _run_units(work: Callable[[Any], Any], units: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    for unit in units:
        outcome = pa.array([pickle.dumps(work(unit))], pa.binary())
        yield pa.RecordBatch.from_arrays([outcome], names=["outcome"])
