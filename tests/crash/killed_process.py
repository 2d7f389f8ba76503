"""A process that dies at a storage call on local disk."""

from __future__ import annotations

from contextlib import contextmanager, suppress

from lakeformat.storage.local import LocalStorage

__all__ = ["Killed", "killed_at"]

CALLS = (
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


class Killed(BaseException):
    """The process is dead: from here on it makes no storage call."""


@contextmanager
def killed_at(number):
    """Die before or after a storage call. Return True if the run reached that call."""
    met, done = [0], {name: getattr(LocalStorage, name) for name in CALLS}

    def meet():
        met[0] += 1
        if met[0] >= number:
            raise Killed

    def counted(call):
        def counting(*args, **kwargs):
            meet()
            answer = call(*args, **kwargs)
            meet()
            return answer

        return counting

    for name, call in done.items():
        setattr(LocalStorage, name, counted(call))
    try:
        with suppress(Killed):
            yield lambda: met[0] >= number
    finally:
        for name, call in done.items():
            setattr(LocalStorage, name, call)
