"""Operating system errors, translated once into the library's own with a remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakeformat.errors import AlreadyExistsError, NotFoundError, UnavailableError

__all__ = ["DISK_ERRORS", "reading", "translated"]

DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE}
)
"""Errors only a disk can raise: whoever sees one while writing knows whose fault it is."""

_RETRY = "Retry once the file system answers again."
_REMEDIES = {
    errno.ENOSPC: "The disk is full: free some space, then retry; expiring snapshots frees more, "
    "and needs a little to begin with.",
    errno.EDQUOT: "The disk quota is used up: free some space or raise the quota, then retry.",
    errno.EFBIG: "The file is larger than the file system or a limit (ulimit -f) allows: raise it, "
    "or lower 'target-file-size', then retry.",
    errno.ENOENT: "A directory on the way has vanished: retry, unless somebody dropped it.",
    errno.EROFS: "The file system is read-only: remount it writable or use another warehouse.",
    errno.ENOTDIR: "A file stands where a directory is needed: remove it or choose another path.",
    errno.ELOOP: "A symbolic link leads back to itself: repair or remove it.",
    errno.EMFILE: "Too many open files: raise the limit (ulimit -n), then retry.",
    errno.ENAMETOOLONG: "The path is too long for this file system: choose a shorter one.",
}


@contextmanager
def translated(operation: str, path: str, *, writes_nothing: bool = False) -> Iterator[None]:
    """Raise the library's error for any OSError of the block, saying what was tried on what.

    ``writes_nothing`` says that whatever fails in the block, nothing is at ``path`` for it.
    """
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"Cannot {operation} {path}: the name is taken.") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        refusal = UnavailableError(f"Cannot {operation} {path}: {reason}. {_remedy(error)}")
        refusal.nothing_was_written = writes_nothing
        raise refusal from error


@contextmanager
def reading(operation: str, path: str) -> Iterator[None]:
    """Like ``translated``, for a file that has to be there: its absence is NotFoundError."""
    with translated(operation, path):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise NotFoundError(f"Cannot {operation} {path}: no such file.") from error


def _remedy(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Give user id {os.geteuid()} the permission, or run as the owner of the warehouse."
    return _REMEDIES.get(error.errno or 0, _RETRY)
