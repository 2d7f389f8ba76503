# SPDX-License-Identifier: Apache-2.0
"""Translates operating system errors into errors of this library, with a remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakeformat.errors import AccessDeniedError, AlreadyExistsError, NotFoundError, UnavailableError

__all__ = ["DISK_ERRORS", "reading", "translated"]

DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE}
)
"""Error numbers that only disks raise. A writer can distinguish them from errors of its caller."""

_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_RETRY = "Retry once the file system answers again."
_REMEDIES = {
    errno.ENOSPC: "The disk is full: free some space, then retry. To free more space, expire "
    "snapshots; the expiry itself needs a little space.",
    errno.EDQUOT: "The disk quota is used up: free some space or raise the quota, then retry.",
    errno.EFBIG: "The file is larger than the file system or a limit (ulimit -f) allows: raise the "
    "limit, or lower the table's target file size ('target-file-size'; of an Iceberg table "
    "'write.target-file-size-bytes'), then retry.",
    errno.ENOENT: "A parent directory is missing: retry, unless the table was dropped.",
    errno.EROFS: "The file system is read-only: remount it writable or use another warehouse.",
    errno.ENOTDIR: "A file is in the place of a directory: delete it or choose another path.",
    errno.ELOOP: "A symbolic link leads back to itself: repair or remove it.",
    errno.EMFILE: "Too many open files: raise the limit (ulimit -n), then retry.",
    errno.ENAMETOOLONG: "The path is too long for this file system: choose a shorter one.",
}


@contextmanager
def translated(operation: str, path: str, *, writes_nothing: bool = False) -> Iterator[None]:
    """Raise a ``LakeError``, which names the operation and the path, for any ``OSError`` of a with
    block.

    The class is ``AlreadyExistsError`` for a taken name, ``AccessDeniedError`` for a missing
    permission or a read-only file system, else ``UnavailableError``. With ``writes_nothing`` the
    caller promises that a failed block leaves nothing at ``path``; ``nothing_was_written`` of the
    error is then True.
    """
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(
            f"Cannot {operation} {path}: the name is taken. Choose another name."
        ) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        kind = AccessDeniedError if error.errno in _DENIED else UnavailableError
        refusal = kind(f"Cannot {operation} {path}: {reason}. {_remedy(error)}")
        refusal.nothing_was_written = writes_nothing
        raise refusal from error


@contextmanager
def reading(operation: str, path: str) -> Iterator[None]:
    """Raise ``NotFoundError`` if a with block finds no file at ``path``.

    Any other ``OSError`` of the block is raised as ``translated`` raises it.
    """
    with translated(operation, path):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise NotFoundError(
                f"Cannot {operation} {path}: no such file. Check the path."
            ) from error


def _remedy(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Give user id {os.geteuid()} the permission, or run as the owner of the warehouse."
    return _REMEDIES.get(error.errno or 0, _RETRY)
