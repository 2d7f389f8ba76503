# SPDX-License-Identifier: Apache-2.0
"""Deletes a directory only while it is empty."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["RemovesEmptyDirectories", "empty_remover", "remove_empty_directory"]


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


def empty_remover(storage: Storage) -> RemovesEmptyDirectories | None:
    """Return the storage without its locks if it is a ``RemovesEmptyDirectories``; else None."""
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, RemovesEmptyDirectories) else None


def remove_empty_directory(storage: Storage, path: str) -> bool:
    """Delete a directory if it is empty; return False if it has content, else True.

    Unless the storage is a ``RemovesEmptyDirectories``, the check and the deletion are two steps: a
    file that is written between them is lost.
    """
    in_one_step = empty_remover(storage)
    if in_one_step is not None:
        return in_one_step.remove_empty_directory(path)
    if storage.list(path):
        return False
    storage.delete_directory(path)
    return True
