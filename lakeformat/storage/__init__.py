"""The only door to bytes: one protocol and the storages that keep it."""

from __future__ import annotations

from lakeformat.storage.address import open_storage, resolve
from lakeformat.storage.base import FileInfo, Storage, temporary_sibling
from lakeformat.storage.local import LocalStorage
from lakeformat.storage.memory import MemoryStorage

__all__ = [
    "FileInfo",
    "LocalStorage",
    "MemoryStorage",
    "Storage",
    "open_storage",
    "resolve",
    "temporary_sibling",
]
