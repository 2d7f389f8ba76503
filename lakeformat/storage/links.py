"""Symbolic links below a table's directory: never followed, as one can lead to another table."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from typing import NoReturn

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = [
    "FollowsNoLinks",
    "is_link",
    "refuse_link",
    "refuse_way_out",
    "require_no_link",
    "within",
]


class FollowsNoLinks(ABC):
    """A storage that has links and can be given one directory, to follow no link below it.

    A class to derive from: a storage that only wraps one, as tests have them, is not taken apart.
    """

    @abstractmethod
    def within(self, root: str) -> Storage:
        """Return the same storage for one directory: links below it are refused."""

    @abstractmethod
    def is_link(self, path: str) -> bool:
        """Return True if a path is a link, wherever it leads."""

    @abstractmethod
    def require_no_link(self, path: str) -> None:
        """Refuse a path that is a link below the root, or leads through one."""


def within(storage: Storage, root: str) -> Storage:
    """Return a storage that reaches what lies below ``root``, and through no link below it."""
    if isinstance(storage, LockedCreation):
        return storage.around(within(storage.inner, root))
    return storage.within(root) if isinstance(storage, FollowsNoLinks) else storage


def is_link(storage: Storage, path: str) -> bool:
    """Return True if a path is a link; most storages have none."""
    inner = _inner(storage)
    return inner.is_link(path) if isinstance(inner, FollowsNoLinks) else False


def require_no_link(storage: Storage, path: str) -> None:
    """Refuse a path that another program will open and that leads through a link."""
    inner = _inner(storage)
    if isinstance(inner, FollowsNoLinks):
        inner.require_no_link(path)


def _inner(storage: Storage) -> Storage:
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage


def refuse_way_out(root: str, path: str, *, whole: bool) -> None:
    """Refuse a local path that leaves ``root``, by its names or through a link below ``root``.

    The last name of the path counts only if it is ``whole``: a link itself can be deleted.
    """
    if path == root:
        return
    above = f"{root.rstrip('/')}/"
    if not path.startswith(above) or "/../" in path or path.endswith("/.."):
        raise InvalidRequestError(
            f"Cannot use {path}: it lies outside of {root}, the directory of the table or an "
            "external root. Nothing was read or changed; look at the metadata that names it."
        )
    end = len(above)
    while (end := path.find("/", end)) >= 0:
        if not _is_directory(root, path[:end]):
            return
        end += 1
    if whole:
        _is_directory(root, path)


def refuse_link(root: str, path: str) -> NoReturn:
    """Refuse to follow a link."""
    raise InvalidRequestError(
        f"Cannot use {path}: it is a symbolic link. Below {root} files are neither read, written "
        "nor deleted through links, as a link can lead to another table. Replace it by what it "
        "leads to; or keep the files elsewhere with 'data-file.external-paths' and external-roots."
    )


def _is_directory(root: str, path: str) -> bool:
    """Return False for what is not there or no directory; a link is refused."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISLNK(mode):
        refuse_link(root, path)
    return stat.S_ISDIR(mode)
