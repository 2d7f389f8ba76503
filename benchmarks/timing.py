"""Times one run of one candidate."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.question import Question

__all__ = ["Timing", "ready_work", "time_work"]


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one run; CPU time includes all threads of the process."""

    wall_seconds: float
    cpu_seconds: float


@contextmanager
def ready_work(
    question: Question[Any, Any], candidate: str, data: object
) -> Iterator[Callable[[], Any]]:
    """Yield the work of a candidate in its own folder, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as folder:
        work = question.candidates[candidate](data, Path(folder))
        # Return freed memory, so that no candidate profits from the memory of another.
        gc.collect()
        pa.default_memory_pool().release_unused()
        yield work


def time_work(question: Question[Any, Any], candidate: str, data: object) -> Timing:
    """Run a candidate once; preparation and clean-up are not timed."""
    with ready_work(question, candidate, data) as work:
        wall, cpu = time.perf_counter(), time.process_time()
        question.consume(work())
        return Timing(time.perf_counter() - wall, time.process_time() - cpu)
