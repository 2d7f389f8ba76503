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
"""The number of threads for each processor; more than one, because storage operations mostly
wait.
"""


def in_parallel(act: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> list[R]:
    """Call ``act`` with each item in threads, and return the results in the order of the items.

    Default for ``threads``: four for each processor. If a call fails, its error is raised, and
    items that have not begun are skipped.
    """
    waiting = list(items)
    most = threads or _PER_PROCESSOR * (os.cpu_count() or 1)
    if most == 1 or len(waiting) < 2:
        return [act(item) for item in waiting]
    with ThreadPoolExecutor(min(most, len(waiting))) as pool:
        return list(pool.map(act, waiting))
