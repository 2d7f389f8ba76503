# SPDX-License-Identifier: Apache-2.0
"""Keeps a directory when everything in it is deleted or moved."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.storage.base import Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["KeepsDirectories", "keep_directory"]


@runtime_checkable
class KeepsDirectories(Protocol):
    """A storage in which a directory without a marker exists only while a file is below it."""

    def keep_directory(self, path: str) -> None:
        """Write the marker of a directory if it is missing."""
        ...


def keep_directory(storage: Storage, path: str) -> None:
    """Keep a directory even if everything in it is deleted later.

    Do nothing on a storage with real directories. Another program may have made the directory
    without a marker, for example by writing a table into it.
    """
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    if isinstance(storage, KeepsDirectories):
        storage.keep_directory(path)
