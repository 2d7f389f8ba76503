"""Where units are worked on: one after the other, in threads, or wherever an ``Executor`` works."""

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
    """Somewhere else to work, such as a cluster; work, units and results can be pickled."""

    def outcomes(self, work: Work[T, R], units: Sequence[T], stop: Event) -> Iterator[R]:
        """The result of each unit as soon as it is there, in whichever order.

        Once ``stop`` is set nothing more is begun, and what runs is given up; only what is done
        already still comes out. An error of the work is raised here, and ends all.
        """
        ...


def require_executor(executor: str | None) -> str:
    """The name of an executor; threads unless something else is said."""
    chosen = "threads" if executor is None else executor
    if chosen not in EXECUTORS:
        raise InvalidRequestError(f"executor is one of {', '.join(EXECUTORS)}, got {executor!r}")
    return chosen


def where_to_work(executor: str | Executor | None) -> str | Executor:
    """The name of an executor, or one that somebody brought."""
    if executor is None or isinstance(executor, str):
        return require_executor(executor)
    given: object = executor  # callers without a type checker may pass anything
    if isinstance(given, type) or not isinstance(given, Executor):
        raise InvalidRequestError(
            f"executor is one of {', '.join(EXECUTORS)} or an object with a method 'outcomes', "
            f"got {executor!r}"
        )
    return given


def has_idle_cores(executor: str | Executor, units: int) -> bool:
    """Whether there are cores that none of so many units will be worked on."""
    return executor == "threads" and units < _cores()


def outcomes_of(
    executor: str,
    work: Work[T, R],
    units: Sequence[T],
    *,
    stop: Event | None = None,
    lost: Callable[[R], object] | None = None,
) -> Iterator[R]:
    """The result of each unit as soon as it is there; in threads, one unit more than cores.

    While one waits for its file to be on disk, the cores have others. If this ends early, as when
    somebody interrupts it while it waits, ``stop`` is set for the units that are under way, and
    ``lost`` is called with what becomes of them: nobody else hears of it.
    """
    threads = min(len(units), _cores() + 1)
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
    """What is read of each thing, in their order; the largest are read first.

    An error of a table or of its storage is raised as it was there.
    """
    units = [_Unit(at, thing, size_of(thing)) for at, thing in enumerate(things)]
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
        for _ in outcomes:  # what runs is given up
            pass


@dataclass(frozen=True, slots=True)
class _Unit(Generic[T]):
    """A thing with its place among all, and how large it is."""

    number: int
    thing: T
    bytes: int


@dataclass(frozen=True, slots=True)
class _Reading(Generic[T, R]):
    """Reads a thing; what is wrong with the table is an outcome too."""

    read: Callable[[T], R]

    def __call__(self, unit: _Unit[T]) -> tuple[int, list[R], Exception | None]:
        try:
            return unit.number, [self.read(unit.thing)], None
        except (LakeError, OSError) as error:
            return unit.number, [], error
