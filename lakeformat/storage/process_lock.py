# SPDX-License-Identifier: Apache-2.0
"""A lock between the threads of this process, for tables that no other process writes.

The lock never expires. It is released even if a write under it got no answer. Such a write may
arrive later and replace the write of the next holder. See ``docs/storage.md``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakeformat.storage.lock import Held

__all__ = ["ProcessLock"]


class _HeldLock:
    def require_time(self, seconds: float = 0.0) -> None:
        """Do nothing: a lock in memory does not expire."""

    def keep(self) -> None:
        """Do nothing: the lock is released as usual, because a kept lock would never be free."""


class ProcessLock:
    """One mutex per key, as long as this object exists."""

    def __init__(self) -> None:
        self._mutexes: dict[str, threading.Lock] = {}

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        """Hold the mutex of ``key`` in a with block.

        The mutex is not re-entrant: a thread that already holds it would wait forever.
        """
        # setdefault is atomic, so two threads never get two mutexes for one key.
        with self._mutexes.setdefault(key, threading.Lock()):
            yield _HeldLock()
