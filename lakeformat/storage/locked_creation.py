# SPDX-License-Identifier: Apache-2.0
"""Publishes under a lock, for storages that cannot decide a race between writers."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Protocol, runtime_checkable

from lakeformat.errors import (
    LockUnavailableError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.storage.base import LARGE_FILE, SMALL_FILE, FileInfo, Storage
from lakeformat.storage.lock import Held, Lock
from lakeformat.storage.turns import turn

__all__ = ["BoundsWrites", "LockedCreation"]


@runtime_checkable
class BoundsWrites(Protocol):
    """A storage that gives up a write after a known duration."""

    @property
    def longest_write_seconds(self) -> float:
        """The longest duration of ``overwrite`` with its retries, in seconds."""
        ...


class LockedCreation:
    """A storage whose ``create`` runs under a lock. Other calls need no lock.

    ``key`` is the name of the lock, such as a table's full name. If the storage itself can
    refuse a name that is taken, it decides a race even with a writer that ignores the lock.

    Code that already holds the lock calls ``inner.create``, because locks are not re-entrant.
    """

    def __init__(self, inner: Storage, lock: Lock, key: str) -> None:
        self.inner = inner
        self._lock = lock
        self._key = key

    def around(self, inner: Storage) -> LockedCreation:
        """Return a storage that publishes on ``inner`` under the same lock."""
        return LockedCreation(inner, self._lock, self._key)

    def __repr__(self) -> str:
        return f"LockedCreation({self.inner!r}, key={self._key!r})"

    def __reduce__(self) -> tuple[type[LockedCreation], tuple[Storage, Lock, str]]:
        """Pickle without the lock: another process can do everything except ``create``."""
        return LockedCreation, (self.inner, _LeftBehind(), self._key)

    def create(self, path: str, content: bytes) -> bool:
        """Publish ``content`` as ``path`` under the lock; return False if the path is taken.

        Raise ``LockUnavailableError``, and write nothing, if the lock is not certainly held.
        """
        with self._lock.hold(self._key) as held:
            held.require_time()
            try:
                return self.inner.create(path, content)
            except UnsupportedError:
                return self._create_alone(path, content, held)
            except BaseException:
                if isinstance(
                    self.inner, LockedCreation
                ):  # the inner storage may have written without its own conditional write
                    held.keep()
                raise

    def _create_alone(self, path: str, content: bytes, held: Held) -> bool:
        if self.inner.exists(path):
            return False
        # The check before may have taken long; do nothing between this line and the write.
        held.require_time(_longest_write_seconds(self.inner))
        try:
            self.inner.overwrite(path, content)
        except BaseException:
            # After any failure, Ctrl-C included, the bytes may still arrive, and would replace the
            # publication of the next holder.
            held.keep()
            raise
        # A writer that ignored the lock, or whose lock had expired, may have replaced the file.
        try:
            return self.inner.read(path, LARGE_FILE) == content
        except NotFoundError as error:
            raise UnavailableError(
                f"Cannot find out whether {self.inner.uri(path)} was published: it was written, "
                "but is missing now. Look for a program that deletes files there, then retry."
            ) from error

    @property
    def scheme(self) -> str:
        """The scheme of the inner storage."""
        return self.inner.scheme

    def turn(
        self, directory: str, sleep_seconds: Callable[[float], None]
    ) -> AbstractContextManager[None]:
        """Return a context manager that waits until this writer may commit; see ``turns.py``.

        The writers of one machine wait for each other, so that fewer of them request the lock at
        the same time.
        """
        return turn(self.inner, directory, sleep_seconds)

    def uri(self, path: str) -> str:
        return self.inner.uri(path)

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        return self.inner.read(path, limit)

    def open_input(self, path: str) -> IO[bytes]:
        return self.inner.open_input(path)

    def open_output(self, path: str) -> AbstractContextManager[IO[bytes]]:
        return self.inner.open_output(path)

    def overwrite(self, path: str, content: bytes) -> None:
        self.inner.overwrite(path, content)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def list(self, path: str) -> builtins.list[FileInfo]:
        return self.inner.list(path)

    def make_directory(self, path: str) -> None:
        self.inner.make_directory(path)

    def directory_exists(self, path: str) -> bool:
        return self.inner.directory_exists(path)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def delete_directory(self, path: str) -> None:
        self.inner.delete_directory(path)


class _LeftBehind:
    """Replaces the lock of an unpickled storage; ``hold`` raises ``LockUnavailableError``.

    Only the process that opened the table has the lock.
    """

    def hold(self, key: str) -> AbstractContextManager[Held]:
        raise LockUnavailableError(
            f"Cannot publish {key} in this process: only the process that opened the table has "
            "its lock. Publish in that process."
        )


def _longest_write_seconds(storage: Storage) -> float:
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage.longest_write_seconds if isinstance(storage, BoundsWrites) else 0.0
