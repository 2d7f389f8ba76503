"""Turns: commits of one machine queue up for a table instead of overtaking one another.

A courtesy, never a guarantee: what is published is decided by ``create`` alone. Writers that are
not asked, such as other engines, and storages without turns only cost further attempts.
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
"""Whoever has the turn for so long has been suspended: the others go on without it."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.001, 0.02


@runtime_checkable
class TakesTurns(Protocol):
    """A storage that lets writers wait for each other."""

    def turn(
        self, directory: str, sleep_seconds: Callable[[float], None]
    ) -> AbstractContextManager[None]:
        """Have the turn of a directory while the context lasts; may give up and go on without."""
        ...


def turn(
    storage: Storage, directory: str, sleep_seconds: Callable[[float], None]
) -> AbstractContextManager[None]:
    """The turn of a directory, on storages that have turns."""
    if isinstance(storage, TakesTurns):
        return storage.turn(directory, sleep_seconds)
    return nullcontext()


@contextmanager
def directory_turn(directory: str, sleep_seconds: Callable[[float], None]) -> Iterator[None]:
    """A lock on a local directory, which the kernel releases even if its holder is killed."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield  # it comes into being with the first file in it
        return
    try:
        _wait(descriptor, sleep_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, sleep_seconds: Callable[[float], None]) -> None:
    """Return with the lock, or without it when patience or the file system ends."""
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
