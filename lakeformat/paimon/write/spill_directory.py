"""A directory for temporary files, locked as long as its process lives.

A process that is killed cannot remove its own: the next one that spills removes what is unlocked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["SpillDirectory"]

_PREFIX = "lake-spill-"


class SpillDirectory:
    """A new directory in the place for temporary files."""

    def __init__(self) -> None:
        _remove_those_of_the_dead(Path(tempfile.gettempdir()))
        self.path, lock = _new_locked()
        self._finalizer = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Remove it and all files in it; it is done at the end in any case."""
        self._finalizer()


def _new_locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _locked(path)
        # Until it was locked, somebody may have taken it for one of the dead.
        if lock is not None and path.exists():
            return path, lock
        if lock is not None:
            os.close(lock)


def _remove(directory: Path, lock: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    os.close(lock)


def _remove_those_of_the_dead(place: Path) -> None:
    for found in place.glob(f"{_PREFIX}*"):
        lock = _locked(found)
        if lock is not None:
            _remove(found, lock)


def _locked(directory: Path) -> int | None:
    """The handle that holds the lock; None if another has it, or it is no directory of ours."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle
    os.close(handle)
    return None
