"""Waiting for a storage many times at once, and looking again where it changed meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from lakeformat.errors import CorruptTableError
from lakeformat.handle import TableHandle

__all__ = ["in_parallel", "look_again"]

T = TypeVar("T")
R = TypeVar("R")

_PER_PROCESSOR = 4
"""Who reads or removes a small file mostly waits."""
_LOOKS = 3


def in_parallel(handle: TableHandle, act: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What ``act`` makes of each item, in their order; as many at a time as the table allows."""
    waiting = list(items)
    threads = handle.options.file_operation_threads or _PER_PROCESSOR * (os.cpu_count() or 1)
    if threads == 1 or len(waiting) < 2:
        return [act(item) for item in waiting]
    with ThreadPoolExecutor(min(threads, len(waiting))) as pool:
        return list(pool.map(act, waiting))


def look_again(look: Callable[[], R]) -> R:
    """What ``look`` returns; a file that is gone is damage only if it is found to be so thrice.

    What needs files may go while it is looked at: a tag that is deleted takes them with it.
    """
    for _ in range(_LOOKS - 1):
        with suppress(CorruptTableError):
            return look()
    return look()
