"""Prepares what comes next while its reader works on what is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; one other thread gets each while the caller is at the one before.

    One item is there ahead of the caller, never two. The thread ends with the iteration, whoever
    ends it, after what it is at; an error of ``items`` is raised where its item would have come.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="lake-read-ahead") as thread:
        coming = thread.submit(_next, items)
        while present := coming.result():
            coming = thread.submit(_next, items)
            yield from present


def _next(items: Iterator[T]) -> list[T]:
    """The next item alone, or nothing after the last."""
    return list(islice(items, 1))
