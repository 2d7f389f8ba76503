# SPDX-License-Identifier: Apache-2.0
"""Ends the process of a job: on SIGTERM, or because its parent has died."""

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
"""The exit code after SIGTERM, or after the death of the parent; shells use the same code for
SIGTERM.
"""

_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 30.0


class _Parent:
    """The first parent of this process. If another process is the parent later, the first has
    died.
    """

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
    """Start a thread that ends this process after its parent has died.

    The thread sends SIGTERM to this process, and after ``grace_seconds`` ends it without clean-up.
    After the death of the parent no process would receive the result, and a retry may already run.
    Set ``done`` to end the watch.
    """
    given = (_Parent(), look_seconds, grace_seconds, done or threading.Event())
    thread = threading.Thread(target=_watch, args=given, name="parent", daemon=True)
    thread.start()
    return thread


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Raise ``SystemExit`` in the block on SIGTERM, so that the job deletes its uncommitted files.

    Outside the main thread this has no effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_ending() -> bool:
    """Return True if this process got SIGTERM. Any later error is then a consequence of its end."""
    return _asked_to_end.is_set()


_asked_to_end = threading.Event()


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the clean-up has started
    _asked_to_end.set()
    raise SystemExit(ENDED)


def _watch(
    parent: _Parent, look_seconds: float, grace_seconds: float, done: threading.Event
) -> None:
    while not parent.is_gone():
        if done.wait(look_seconds):
            return
    with suppress(OSError):  # the reader of the log may have died, too
        print(
            "the parent of this process has died, so this process ends", file=sys.stderr, flush=True
        )
    os.kill(os.getpid(), signal.SIGTERM)
    done.wait(grace_seconds)
    os._exit(ENDED)
