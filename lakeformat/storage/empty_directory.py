# SPDX-License-Identifier: Apache-2.0
"""Deletes a directory only while it is empty."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["RemovesEmptyDirectories", "empty_remover", "remove_empty_directory"]


@runtime_checkable
class RemovesEmptyDirectories(Protocol):
    """A storage that checks and deletes in one step, so that no new file is lost."""

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory; return False and keep it if it is not empty. Do nothing if it is
        missing.
        """
        ...


def empty_remover(storage: Storage) -> RemovesEmptyDirectories | None:
    """Return the storage if it checks and deletes in one step, also behind a lock; None for any
    other.
    """
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, RemovesEmptyDirectories) else None


def remove_empty_directory(storage: Storage, path: str) -> bool:
    """Delete a directory if it is empty; return False if it is not.

    Some storages need two steps for this: a file that is written between them is lost.
    """
    in_one_step = empty_remover(storage)
    if in_one_step is not None:
        return in_one_step.remove_empty_directory(path)
    if storage.list(path):
        return False
    storage.delete_directory(path)
    return True
