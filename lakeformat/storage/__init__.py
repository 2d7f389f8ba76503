# SPDX-License-Identifier: Apache-2.0
"""All access to bytes: one protocol, and the storages that implement it."""

from __future__ import annotations

from lakeformat.storage.address import open_storage, resolve
from lakeformat.storage.base import FileInfo, Storage, temporary_sibling
from lakeformat.storage.local import LocalStorage
from lakeformat.storage.lock import Held, Lock
from lakeformat.storage.locked_creation import LockedCreation
from lakeformat.storage.memory import MemoryStorage
from lakeformat.storage.object_store import ObjectStorage
from lakeformat.storage.process_lock import ProcessLock
from lakeformat.storage.store_options import is_storage_option
from lakeformat.storage.walls import NO_ROOTS, ExternalRoots

__all__ = [
    "NO_ROOTS",
    "ExternalRoots",
    "FileInfo",
    "Held",
    "LocalStorage",
    "Lock",
    "LockedCreation",
    "MemoryStorage",
    "ObjectStorage",
    "ProcessLock",
    "Storage",
    "is_storage_option",
    "open_storage",
    "resolve",
    "temporary_sibling",
]
