# SPDX-License-Identifier: Apache-2.0
"""Runs storage operations in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_parallel"]

T = TypeVar("T")
R = TypeVar("R")

_PER_PROCESSOR = 4
"""Threads for each processor: deletions and other small operations mostly wait for the storage."""


def in_parallel(act: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> list[R]:
    """Return the result of ``act`` for each item, in order.

    The default number of threads depends on the number of processors.
    """
    waiting = list(items)
    most = threads or _PER_PROCESSOR * (os.cpu_count() or 1)
    if most == 1 or len(waiting) < 2:
        return [act(item) for item in waiting]
    with ThreadPoolExecutor(min(most, len(waiting))) as pool:
        return list(pool.map(act, waiting))
