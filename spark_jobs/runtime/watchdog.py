"""How the process of a job ends from outside: asked to, or because its parent has died."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["ENDED", "ending_cleanly", "is_ending", "watch_parent"]

ENDED = 143
"""The exit code of both: what a shell says of SIGTERM."""

_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 30.0


class _Parent:
    """The parent a process began with; another one means that it is an orphan."""

    def __init__(self) -> None:
        self._began_with = os.getppid()

    def is_gone(self) -> bool:
        return os.getppid() != self._began_with


def watch_parent(
    *,
    look_seconds: float = _LOOK_SECONDS,
    grace_seconds: float = _GRACE_SECONDS,
    done: threading.Event | None = None,
) -> threading.Thread:
    """End this process once its parent is gone: cleanly if it can, at any rate after the grace.

    Nobody would read its result, and its successor may be at work already. ``done`` ends the watch.
    """
    given = (_Parent(), look_seconds, grace_seconds, done or threading.Event())
    thread = threading.Thread(target=_watch, args=given, name="parent", daemon=True)
    thread.start()
    return thread


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let SIGTERM unwind the job, so that files nobody will commit are removed on the way."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_ending() -> bool:
    """Whether the process has been told to end: what fails from then on fails because of that."""
    return _told.is_set()


_told = threading.Event()


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the clean-up is under way
    _told.set()
    raise SystemExit(ENDED)


def _watch(
    parent: _Parent, look_seconds: float, grace_seconds: float, done: threading.Event
) -> None:
    while not parent.is_gone():
        if done.wait(look_seconds):
            return
    with suppress(OSError):  # whoever read it is gone, too
        print("the parent of this process is gone: ending", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    done.wait(grace_seconds)
    os._exit(ENDED)
