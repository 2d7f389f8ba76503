# SPDX-License-Identifier: Apache-2.0
"""The contract of a lock under which a table publishes its snapshots.

A lock is for storages whose ``create`` cannot decide a race by itself (``LockedCreation``). No lock
outside this process can promise that only its holder works: while a holder is paused, it may lose
its lock without notice. So a lock states how long it is certainly held, and the publisher checks
that again right before the write.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["Held", "Lock"]


class Held(Protocol):
    """A lock that is being held."""

    def require_time(self, seconds: float = 0.0) -> None:
        """Raise ``LockUnavailableError`` if the lock may expire before one small file is written.

        Then nothing was written, and the caller gives up the commit. ``seconds`` is the longest
        duration of the write, 0 if unknown. Raise ``InvalidRequestError`` if even a lock that was
        just taken expires too early for such a write.
        """
        ...

    def keep(self) -> None:
        """Keep the lock until it expires, after a write under the lock failed.

        The write may still arrive, so the next holder must wait until the lock has expired. The
        caller must not publish again under this lock.
        """
        ...


class Lock(Protocol):
    """Locks by name: each has one holder at a time among all processes that write one warehouse."""

    def hold(self, key: str) -> AbstractContextManager[Held]:
        """Hold the lock of ``key``, such as a table's full name ``<database>.<object>``, in a with
        block.

        Wait for another holder; raise ``LockUnavailableError`` if that takes too long, or if the
        lock's service does not answer. Leaving the context releases only this holder's lock, never
        a successor's. A failed release is logged and not raised, because the work is complete.
        """
        ...
