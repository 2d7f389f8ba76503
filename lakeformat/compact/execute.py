"""Where units are compacted: one after the other, or several at a time in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeAlias, TypeVar

from lakeformat.errors import InvalidRequestError

__all__ = ["EXECUTORS", "outcomes_of", "require_executor"]

T = TypeVar("T")
R = TypeVar("R")
Work: TypeAlias = Callable[[T], R]

EXECUTORS = ("serial", "threads")


def require_executor(executor: str | None) -> str:
    """The name of an executor; threads unless something else is said."""
    chosen = "threads" if executor is None else executor
    if chosen not in EXECUTORS:
        raise InvalidRequestError(f"executor is one of {', '.join(EXECUTORS)}, got {executor!r}")
    return chosen


def outcomes_of(executor: str, work: Work[T, R], units: Sequence[T]) -> Iterator[R]:
    """The result of each unit as soon as it is there; no more units run at once than CPUs."""
    threads = min(len(units), os.cpu_count() or 1)
    if executor == "serial" or threads < 2:
        yield from map(work, units)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="compact")
    waiting = iter(units)
    running: set[Future[R]] = set()
    try:
        while True:
            while len(running) < threads and (unit := next(waiting, None)) is not None:
                running.add(pool.submit(work, unit))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
