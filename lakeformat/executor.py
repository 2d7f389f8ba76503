# SPDX-License-Identifier: Apache-2.0
"""Runs units of work: one after the other, in threads, or on a caller's ``Executor``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from lakeformat.errors import InvalidRequestError, LakeError

__all__ = [
    "Executor",
    "has_idle_cores",
    "in_order",
    "outcomes_of",
    "require_executor",
    "where_to_work",
]

T = TypeVar("T")
R = TypeVar("R")
Work: TypeAlias = Callable[[T], R]

EXECUTORS = ("serial", "threads")


@runtime_checkable
class Executor(Protocol):
    """An object that runs units of work elsewhere, such as in Spark's tasks.

    The work, its units and its results must be picklable.
    """

    def outcomes(self, work: Work[T, R], units: Sequence[T], stop: Event) -> Iterator[R]:
        """Yield the result of each unit as soon as it is ready, in any order.

        Once ``stop`` is set, no unit is started and running units are cancelled; results that are
        ready are still yielded. An error of the work is raised here and ends the iteration.
        """
        ...


def require_executor(executor: str | None) -> str:
    """Return the name of an executor; ``"threads"`` for None.

    Any other name than ``"serial"`` and ``"threads"`` raises ``InvalidRequestError``.
    """
    chosen = "threads" if executor is None else executor
    if chosen not in EXECUTORS:
        raise InvalidRequestError(
            f"executor must be one of {', '.join(EXECUTORS)}, got {executor!r}"
        )
    return chosen


def where_to_work(executor: str | Executor | None) -> str | Executor:
    """Return the checked argument ``executor`` of an operation; ``"threads"`` for None.

    ``InvalidRequestError`` is raised for an unknown name, and for an object without a method
    ``outcomes``.
    """
    if executor is None or isinstance(executor, str):
        return require_executor(executor)
    given: object = executor  # callers without a type checker may pass anything
    if isinstance(given, type) or not isinstance(given, Executor):
        raise InvalidRequestError(
            f"executor must be one of {', '.join(EXECUTORS)} or an object with a method "
            f"'outcomes', got {executor!r}"
        )
    return given


def has_idle_cores(executor: str | Executor, units: int) -> bool:
    """Return True if ``executor`` is ``"threads"`` and there are fewer units than cores."""
    return executor == "threads" and units < _cores()


def outcomes_of(
    executor: str,
    work: Work[T, R],
    units: Sequence[T],
    *,
    stop: Event | None = None,
    lost: Callable[[R], object] | None = None,
    at_a_time: int | None = None,
) -> Iterator[R]:
    """Yield the result of each unit as soon as it is ready.

    ``"serial"`` runs the units one after the other in this thread. ``"threads"`` runs ``at_a_time``
    units in parallel; default: the number of cores plus one, because a thread often waits for
    storage.

    If a unit in a thread fails or the caller stops iterating, ``stop`` is set and no further unit
    is started. ``lost`` is then called with each result that was not yielded.
    """
    threads = min(len(units), at_a_time or _cores() + 1)
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
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                running.remove(future)
                yield future.result()
    except BaseException:
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for future in running:
            if lost is not None and not future.cancelled() and future.exception() is None:
                lost(future.result())


def _cores() -> int:
    return os.cpu_count() or 1


def in_order(
    executor: Executor, read: Work[T, R], things: Sequence[T], size_of: Callable[[T], int]
) -> Iterator[R]:
    """Call ``read`` with each thing on the executor, and yield the results in the order of
    ``things``.

    The largest things are started first; ``size_of`` returns the size of a thing. A ``LakeError``
    or ``OSError`` of ``read`` keeps its class when it is raised here.
    """
    units = [_SizedUnit(at, thing, size_of(thing)) for at, thing in enumerate(things)]
    units.sort(key=lambda unit: -unit.bytes)
    stop = Event()
    outcomes = executor.outcomes(_Reading(read), units, stop)
    early: dict[int, list[R]] = {}
    due = 0
    try:
        for number, found, error in outcomes:
            if error is not None:
                raise error
            early[number] = found
            while due in early:
                yield from early.pop(due)
                due += 1
    finally:
        stop.set()
        for _ in outcomes:  # waits until the running units are cancelled
            pass


@dataclass(frozen=True, slots=True)
class _SizedUnit(Generic[T]):
    """An item of the argument ``things`` of ``in_order``, with its index and its size."""

    number: int
    thing: T
    bytes: int


@dataclass(frozen=True, slots=True)
class _Reading(Generic[T, R]):
    """Call ``read`` with one item, in a task of the executor.

    Return the index of the item, a list with the result, and None. After a ``LakeError`` or
    ``OSError``, return the index, an empty list and the error.
    """

    read: Callable[[T], R]

    def __call__(self, unit: _SizedUnit[T]) -> tuple[int, list[R], Exception | None]:
        try:
            return unit.number, [self.read(unit.thing)], None
        except (LakeError, OSError) as error:
            return unit.number, [], error
