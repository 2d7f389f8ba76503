# SPDX-License-Identifier: Apache-2.0
"""Deletes a directory only while it is empty, or keeps a directory that becomes empty."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = [
    "KeepsDirectories",
    "RemovesEmptyDirectories",
    "empty_remover",
    "keep_directory",
    "remove_empty_directory",
]


@runtime_checkable
class RemovesEmptyDirectories(Protocol):
    """A storage that deletes a directory only if it is empty, in one step.

    So a file that is written meanwhile is not lost.
    """

    def remove_empty_directory(self, path: str) -> bool:
        """Delete an empty directory and return True; return True also if the directory is missing.

        If the directory is not empty, keep it and return False.
        """
        ...


@runtime_checkable
class KeepsDirectories(Protocol):
    """A storage that can keep an empty directory with a marker; any other directory exists only
    while a file is below it.
    """

    def keep_directory(self, path: str) -> None:
        """Write the marker of a directory if it is missing."""
        ...


def empty_remover(storage: Storage) -> RemovesEmptyDirectories | None:
    """Return the storage if it is a ``RemovesEmptyDirectories``, else None.

    In place of a ``LockedCreation``, the storage inside it is examined and returned.
    """
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, RemovesEmptyDirectories) else None


def remove_empty_directory(storage: Storage, path: str) -> bool:
    """Delete a directory if it is empty; return False if it has content, else True.

    A ``RemovesEmptyDirectories`` does this in one step. On any other storage, a file that is
    written between the check and the deletion is lost.
    """
    in_one_step = empty_remover(storage)
    if in_one_step is not None:
        return in_one_step.remove_empty_directory(path)
    if storage.list(path):
        return False
    storage.delete_directory(path)
    return True


def keep_directory(storage: Storage, path: str) -> None:
    """Keep a directory even if everything in it is deleted later.

    Write the marker of the directory if it is missing. Another program may have made the directory
    without a marker, for example by writing a table into it. On a storage with real directories, do
    nothing.
    """
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    if isinstance(storage, KeepsDirectories):
        storage.keep_directory(path)
