# SPDX-License-Identifier: Apache-2.0
"""Turns: the writers of one machine commit to a table one after the other.

Turns only reduce failed attempts and guarantee nothing: ``Storage.create`` alone decides which
commit is published. Writers without turns, such as other engines, only cause more failed attempts.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage

__all__ = ["TakesTurns", "directory_turn", "turn"]

_PATIENCE_SECONDS = 2.0
"""The longest time for which a writer waits for its turn. Then it commits without a turn."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.001, 0.02


@runtime_checkable
class TakesTurns(Protocol):
    """A storage on which writers wait for each other."""

    def turn(
        self, directory: str, sleep_seconds: Callable[[float], None]
    ) -> AbstractContextManager[None]:
        """Return a context manager that lets the writers of one machine commit in a directory one
        after the other.

        If the wait for the other writers takes too long, the block runs anyway.
        """
        ...


def turn(
    storage: Storage, directory: str, sleep_seconds: Callable[[float], None]
) -> AbstractContextManager[None]:
    """Return a context manager that lets the writers of one machine commit in a directory one after
    the other. On a storage without turns it does nothing.
    """
    if isinstance(storage, TakesTurns):
        return storage.turn(directory, sleep_seconds)
    return nullcontext()


@contextmanager
def directory_turn(directory: str, sleep_seconds: Callable[[float], None]) -> Iterator[None]:
    """Lock a local directory in a with block. The kernel releases the lock even if the holder is
    killed.

    The block also runs if the directory is missing or cannot be locked in time.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield  # the first file creates the directory
        return
    try:
        _wait(descriptor, sleep_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, sleep_seconds: Callable[[float], None]) -> None:
    """Lock the file; wait at most ``_PATIENCE_SECONDS`` for the lock.

    Return without the lock after this time, or after an error.
    """
    waited, pause = 0.0, _FIRST_PAUSE_SECONDS
    while waited < _PATIENCE_SECONDS:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            sleep_seconds(pause)
            waited += pause
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        except OSError:
            return
