# SPDX-License-Identifier: Apache-2.0
"""Runs the units of a job in this process or in Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from spark_jobs.runtime.progress import report_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeformat.executor import Executor

__all__ = ["ReportingExecutor", "executor_of"]

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def executor_of(
    engine: str, spark: SparkSession | None, name: str, *, unit: str | None = None
) -> Iterator[Executor | None]:
    """Yield an executor on Spark for engine ``spark``, None for engine ``python``. If ``spark`` is
    None, a session is started for the block.

    If ``unit`` is given, such as ``splits``, the executor on Spark reports how many units are done.
    Leave it out if the work itself reports its progress.
    """
    if engine == "python":
        yield None
        return
    from spark_jobs.frames.executor import SparkExecutor
    from spark_jobs.runtime.spark_session import job_session

    with job_session(spark, name) as session:
        executor = SparkExecutor(session)
        yield executor if unit is None else ReportingExecutor(executor, unit)


@dataclass(frozen=True, slots=True)
class ReportingExecutor:
    """Runs units with another executor, and reports how many units are done."""

    executor: Executor
    unit: str

    def outcomes(self, work: Callable[[T], R], units: Sequence[T], stop: Event) -> Iterator[R]:
        for done, outcome in enumerate(self.executor.outcomes(work, units, stop), 1):
            report_progress(done, len(units), self.unit)
            yield outcome
