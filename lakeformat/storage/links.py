# SPDX-License-Identifier: Apache-2.0
"""Refuses symbolic links below a table's directory: a link may point to another table."""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from typing import NoReturn

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation
from lakeformat.storage.os_errors import translated

__all__ = [
    "FollowsNoLinks",
    "is_link",
    "refuse_link",
    "refuse_way_out",
    "require_no_link",
    "within",
]


class FollowsNoLinks(ABC):
    """A storage that can contain symbolic links, and can refuse to follow them.

    ``within`` limits the storage to one directory, and the result follows no links below that
    directory. A class that wraps such a storage must also derive from this class.
    ``LockedCreation`` is the exception, because the functions of this module inspect the storage
    inside it.
    """

    @abstractmethod
    def within(self, root: str) -> Storage:
        """Return this storage for the paths below ``root``.

        The methods of the result raise ``InvalidRequestError`` for a link below ``root``, and for a
        path outside of it.
        """

    @abstractmethod
    def is_link(self, path: str) -> bool:
        """Return True if a path is a link, even if the target of the link is missing."""

    @abstractmethod
    def require_no_link(self, path: str) -> None:
        """Raise ``InvalidRequestError`` if a path is a link below the root, or passes through a
        link.
        """


def within(storage: Storage, root: str) -> Storage:
    """Return a storage for the paths below ``root``.

    If the storage can contain links, the methods of the result raise ``InvalidRequestError`` for a
    link below ``root``. Any other storage is not limited.
    """
    if isinstance(storage, LockedCreation):
        return storage.around(within(storage.inner, root))
    return storage.within(root) if isinstance(storage, FollowsNoLinks) else storage


def is_link(storage: Storage, path: str) -> bool:
    """Return True if a path is a link; False on storages that cannot contain links."""
    inner = _inner(storage)
    return inner.is_link(path) if isinstance(inner, FollowsNoLinks) else False


def require_no_link(storage: Storage, path: str) -> None:
    """Raise ``InvalidRequestError`` if a path is a link below the storage's root, or passes through
    one.

    Call this before another program opens the path.
    """
    inner = _inner(storage)
    if isinstance(inner, FollowsNoLinks):
        inner.require_no_link(path)


def _inner(storage: Storage) -> Storage:
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage


def refuse_way_out(root: str, path: str, *, whole: bool) -> None:
    """Raise ``InvalidRequestError`` if a local path leaves ``root`` by ``..`` or through a link.

    If ``whole`` is False, the last name of the path may be a link, for example to delete the link
    itself.
    """
    if path == root:
        return
    above = f"{root.rstrip('/')}/"
    if not path.startswith(above) or "/../" in path or path.endswith("/.."):
        raise InvalidRequestError(
            f"Cannot use {path}: it lies outside of {root}, the directory of the table or an "
            "external root. Nothing was read or changed; check the metadata that names it."
        )
    end = len(above)
    while (end := path.find("/", end)) >= 0:
        if not _is_directory(root, path[:end]):
            return
        end += 1
    if whole:
        _is_directory(root, path)


def refuse_link(root: str, path: str) -> NoReturn:
    """Raise ``InvalidRequestError``: ``path``, below ``root``, is a symbolic link."""
    raise InvalidRequestError(
        f"Cannot use {path}: it is a symbolic link. Below {root} no file is read, written or "
        "deleted through a link, as a link can lead to another table. Replace the link by its "
        "target; or keep new files elsewhere, with 'data-file.external-paths' (an Iceberg table: "
        "'write.data.path') and external-roots."
    )


def _is_directory(root: str, path: str) -> bool:
    """Return True for a directory, and False for a file or a missing path.

    Raise ``InvalidRequestError`` for a link.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # so nothing is there
            return False
        with translated("look at", path):
            raise
    if stat.S_ISLNK(mode):
        refuse_link(root, path)
    return stat.S_ISDIR(mode)
