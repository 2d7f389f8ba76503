"""Directories of a POSIX file system whose entries survive a power cut."""

from __future__ import annotations

import errno
import os

from lakeformat.errors import InvalidRequestError

__all__ = ["make_durable_directory", "sync_directory"]

_NO_DIRECTORY_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})


def make_durable_directory(path: str, *, levels: int | None = None) -> None:
    """Create a directory and its parents; each new name is synced before the next one.

    ``FileNotFoundError``, and nothing is created, if more than ``levels`` of them are missing.
    """
    if not path.startswith("/"):
        raise InvalidRequestError("local paths must be absolute: open the path with open_storage")
    missing: list[str] = []
    while not os.path.isdir(path):
        if len(missing) == levels and not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", directory) from None
        # Also if another process created it: that process may not have synced it yet.
        sync_directory(os.path.dirname(directory))


def sync_directory(path: str) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory: their server keeps its entries.
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)
