"""Who reads manifests and lists directories: threads of this process, or an executor's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Generic, TypeVar

from lakeformat.errors import LakeError
from lakeformat.executor import Executor, where_to_work
from lakeformat.handle import TableHandle

__all__ = ["Readers", "readers_of"]

T = TypeVar("T")
R = TypeVar("R")

_READERS = 16
_WORTH_SENDING = 16
"""Fewer things than that are read here before a cluster has begun."""


@dataclass(frozen=True, slots=True)
class Readers:
    """How many threads there are, and what else works."""

    threads: int = _READERS
    executor: Executor | None = None

    def are_elsewhere(self, things: int) -> bool:
        """Whether so many things are not read in this process."""
        return self.executor is not None and things >= _WORTH_SENDING

    def each(
        self,
        read: Callable[[T], R],
        things: Sequence[T],
        at_a_time: int,
        size_of: Callable[[T], int] = lambda _: 0,
    ) -> Iterator[R]:
        """What is read of each thing, in their order; here no more than some are in memory.

        Elsewhere the largest come first; ``read``, things and results are pickled then.
        """
        if self.executor is not None and self.are_elsewhere(len(things)):
            units = [_Unit(at, thing, size_of(thing)) for at, thing in enumerate(things)]
            yield from _elsewhere(self.executor, read, units)
        elif self.threads == 1 or len(things) == 1:
            yield from map(read, things)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                for at in range(0, len(things), at_a_time):
                    yield from pool.map(read, things[at : at + at_a_time])


def readers_of(handle: TableHandle, executor: str | Executor | None = None) -> Readers:
    """As many threads as the table's options say, one, or an executor beside them."""
    chosen = where_to_work(executor)
    threads = handle.options.file_operation_threads or _READERS
    if isinstance(chosen, str):
        return Readers(1 if chosen == "serial" else threads)
    return Readers(threads, chosen)


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


def _elsewhere(
    executor: Executor, read: Callable[[T], R], units: Sequence[_Unit[T]]
) -> Iterator[R]:
    largest_first = sorted(units, key=lambda unit: -unit.bytes)
    stop = Event()
    outcomes = executor.outcomes(_Reading(read), largest_first, stop)
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
