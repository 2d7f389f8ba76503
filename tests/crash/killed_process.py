"""A process that dies at a storage call on local disk."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress

from lakeformat.storage.local import LocalStorage

__all__ = ["STORAGE", "Killed", "die_at", "killed_at"]

STORAGE = [
    (LocalStorage, name)
    for name in (
        "create",
        "delete",
        "exists",
        "list",
        "make_directory",
        "open_input",
        "open_output",
        "overwrite",
        "read",
    )
]
"""The calls of the local storage, each with its class."""


class Killed(BaseException):
    """The process is dead: from here on it makes no storage call."""


@contextmanager
def killed_at(number):
    """Die before or after a storage call. Return True if the run reached that call."""
    met = [0]

    def meet():
        met[0] += 1
        if met[0] >= number:
            raise Killed

    with suppress(Killed), _meeting(meet, STORAGE):
        yield lambda: met[0] >= number


@contextmanager
def die_at(number, calls=STORAGE):
    """Kill this process before or after one of ``calls``."""
    met = [0]

    def meet():
        met[0] += 1
        if met[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with _meeting(meet, calls):
        yield


@contextmanager
def _meeting(meet, calls):
    """Call ``meet`` before and after each of ``calls``."""
    done = [(owner, name, getattr(owner, name)) for owner, name in calls]

    def counted(call):
        def counting(*args, **kwargs):
            meet()
            answer = call(*args, **kwargs)
            meet()
            return answer

        return counting

    for owner, name, call in done:
        setattr(owner, name, counted(call))
    try:
        yield
    finally:
        for owner, name, call in done:
            setattr(owner, name, call)
