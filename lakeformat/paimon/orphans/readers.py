# SPDX-License-Identifier: Apache-2.0
"""Reads manifests and lists directories in parallel, by threads or an executor."""

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
"""With fewer items than this, threads are faster than starting tasks in a cluster."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The number of threads, and the executor for many items, if the caller gave one."""

    threads: int = _READERS
    executor: Executor | None = None

    def are_elsewhere(self, things: int) -> bool:
        """Return True if ``things`` items are enough for the executor to process them."""
        return self.executor is not None and things >= _WORTH_SENDING

    def each(
        self,
        read: Callable[[T], R],
        things: Sequence[T],
        at_a_time: int,
        size_of: Callable[[T], int] = lambda _: 0,
    ) -> Iterator[R]:
        """Yield the result of ``read`` for each item in order; with threads, only a few results are
        in memory.

        The executor gets the largest items first; ``read``, items and results are pickled for it.
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
    """Return the readers for the argument ``executor``: one thread, several threads, or an
    executor.
    """
    chosen = where_to_work(executor)
    threads = handle.options.file_operation_threads or _READERS
    if isinstance(chosen, str):
        return Readers(1 if chosen == "serial" else threads)
    return Readers(threads, chosen)
