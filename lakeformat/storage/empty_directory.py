"""Removing a directory only while nothing is in it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["RemovesEmptyDirectories", "empty_remover", "remove_empty_directory"]


@runtime_checkable
class RemovesEmptyDirectories(Protocol):
    """A storage that looks and removes in one step, so that nothing made meanwhile is lost."""

    def remove_empty_directory(self, path: str) -> bool:
        """Remove a directory; False, and it stays, if something is in it. One gone is fine."""
        ...


def empty_remover(storage: Storage) -> RemovesEmptyDirectories | None:
    """The storage, if it looks and removes in one step; a lock around it makes no difference."""
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, RemovesEmptyDirectories) else None


def remove_empty_directory(storage: Storage, path: str) -> bool:
    """Remove it if it is empty; where that takes two steps, what comes in between is lost."""
    in_one_step = empty_remover(storage)
    if in_one_step is not None:
        return in_one_step.remove_empty_directory(path)
    if storage.list(path):
        return False
    storage.delete_directory(path)
    return True
