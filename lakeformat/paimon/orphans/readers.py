"""Who reads manifests and lists directories: threads of this process, or an executor's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from lakeformat.executor import Executor, in_order, where_to_work
from lakeformat.paimon.handle import TableHandle

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
            yield from in_order(self.executor, read, things, size_of)
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
