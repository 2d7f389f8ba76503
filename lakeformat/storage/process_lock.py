"""A lock between the threads of this process, for whoever vouches that no other process writes.

It does not run out, so it cannot be kept back either: it is free at once after a write without an
answer, which may still arrive and replace what a later holder writes. See ``docs/storage.md``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakeformat.storage.lock import Held

__all__ = ["ProcessLock"]


class _Held:
    def require_time(self, seconds: float = 0.0) -> None:
        """A lock in memory lasts as long as its holder."""

    def keep(self) -> None:
        """Not possible: nobody would ever get the lock again."""


class ProcessLock:
    """One mutex per key, for as long as this object lives."""

    def __init__(self) -> None:
        self._mutexes: dict[str, threading.Lock] = {}

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        """Hold the mutex of ``key``; it is not re-entrant, like the lock of a database."""
        # setdefault is atomic, so that two threads never get two mutexes for one key.
        with self._mutexes.setdefault(key, threading.Lock()):
            yield _Held()
