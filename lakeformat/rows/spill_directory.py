# SPDX-License-Identifier: Apache-2.0
"""A directory for temporary files, locked while its process runs.

A killed process leaves its directory behind. The next process that needs temporary files deletes
every directory that no process has locked.
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
    """A new directory in the system's directory for temporary files."""

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        self.path, lock = _new_locked()
        self._finalizer = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Delete the directory and its files; this also happens when the process exits."""
        self._finalizer()


def _new_locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _locked(path)
        # Before it was locked, another process may have removed it as abandoned.
        if lock is not None and path.exists():
            return path, lock
        if lock is not None:
            os.close(lock)


def _remove(directory: Path, lock: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    os.close(lock)


def _remove_abandoned(place: Path) -> None:
    for found in place.glob(f"{_PREFIX}*"):
        lock = _locked(found)
        if lock is not None:
            _remove(found, lock)


def _locked(directory: Path) -> int | None:
    """Lock a directory and return its file descriptor.

    Return None if another process has the lock, or if ``directory`` is not a directory.
    """
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle
    os.close(handle)
    return None
