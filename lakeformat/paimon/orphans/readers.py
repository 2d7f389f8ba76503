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
    """Reads many items in threads of this process or, if the caller gave one, in an executor."""

    threads: int = _READERS
    executor: Executor | None = None

    def are_elsewhere(self, things: int) -> bool:
        """Return True if the executor, not the threads, reads a list of this length (``things``).

        Return False without an executor. Return False, too, for fewer than 16 items: threads read
        so few items faster than a cluster starts tasks.
        """
        return self.executor is not None and things >= _WORTH_SENDING

    def each(
        self,
        read: Callable[[T], R],
        things: Sequence[T],
        at_a_time: int,
        size_of: Callable[[T], int] = lambda _: 0,
    ) -> Iterator[R]:
        """Yield ``read(item)`` for each item, in the order of ``things``.

        With threads, only ``at_a_time`` results are in memory. An executor gets the items with the
        largest ``size_of`` first; ``read``, items and results must be picklable.
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
    """Return the readers for the argument ``executor``; ``executor=None`` means threads of this
    process.
    """
    chosen = where_to_work(executor)
    threads = handle.options.file_operation_threads or _READERS
    if isinstance(chosen, str):
        return Readers(1 if chosen == "serial" else threads)
    return Readers(threads, chosen)
