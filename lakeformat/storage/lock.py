"""What a lock promises to the publication that runs under it.

A lock is for storages whose ``create`` cannot decide a race by itself (``LockedCreation``).
Nothing that lives outside this process can promise that nobody else works while it is held: a
paused holder loses its lock without hearing of it. So a lock says how long it is surely held,
and whoever publishes asks once more right before the write.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["Held", "Lock"]


class Held(Protocol):
    """A lock while it is held."""

    def require_time(self, seconds: float = 0.0) -> None:
        """Return while the lock is surely ours for long enough to write one small object.

        Otherwise ``LockUnavailableError``: nothing was written, the caller gives the commit up.
        ``seconds`` is how long the write may take, where that is known; ``InvalidRequestError``
        if the lock is never sure for so long.
        """
        ...

    def keep(self) -> None:
        """Never give the lock back: a write under it got no answer, and may still arrive.

        The next holder comes when the lock runs out by itself. This one holds nothing any more.
        """
        ...


class Lock(Protocol):
    """Mutual exclusion by name between every process that writes one warehouse."""

    def hold(self, key: str) -> AbstractContextManager[Held]:
        """Hold the lock of ``key``, the table's full name as ``<database>.<object>``.

        Waits for another holder, and raises ``LockUnavailableError`` when that takes too long or
        the lock's own service does not answer. Leaving the context releases this holder's lock
        only, never a successor's; a failing release is logged and not raised, as the work is done.
        """
        ...
