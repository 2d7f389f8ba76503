# SPDX-License-Identifier: Apache-2.0
"""Fetches the next item in a thread while the caller works on the current one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield ``items``; a thread fetches the next item while the caller works on the current one.

    At most one item is fetched ahead. If the caller closes the iterator early, the close waits
    until the thread has fetched its current item. An error of ``items`` is raised after all items
    before it were yielded.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="lake-read-ahead") as thread:
        coming = thread.submit(_next, items)
        while present := coming.result():
            coming = thread.submit(_next, items)
            yield from present


def _next(items: Iterator[T]) -> list[T]:
    return list(islice(items, 1))
