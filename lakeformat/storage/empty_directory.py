"""Removing a directory only while nothing is in it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["RemovesEmptyDirectories", "remove_empty_directory"]


@runtime_checkable
class RemovesEmptyDirectories(Protocol):
    """A storage that looks and removes in one step, so that nothing made meanwhile is lost."""

    def remove_empty_directory(self, path: str) -> bool:
        """Remove a directory; False, and it stays, if something is in it. One gone is fine."""
        ...


def remove_empty_directory(storage: Storage, path: str) -> bool:
    """The same on any storage; where it has no such step, what is made after the look is lost."""
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    if isinstance(storage, RemovesEmptyDirectories):
        return storage.remove_empty_directory(path)
    if storage.list(path):
        return False
    storage.delete_directory(path)
    return True
