# SPDX-License-Identifier: Apache-2.0
"""One store of a Mixed table as an Iceberg table that cannot be changed.

A plain Iceberg commit gives its files names without a node and a transaction. In the base store
their rows would count as older than every change; in the change store they make the table
unreadable.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import NoReturn

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.table.table import IcebergTable

__all__ = ["read_only_store"]


class _StorePointer:
    """Reads the metadata of a store, and publishes none."""

    def __init__(self, pointer: MetadataPointer, store: str) -> None:
        self._pointer = pointer
        self._store = store

    @property
    def uri(self) -> str:
        """The URI of the store."""
        return self._pointer.uri

    def load(self) -> LoadedMetadata:
        """Return the current metadata."""
        return self._pointer.load()

    def require_writable(self) -> NoReturn:
        """Raise, because only a writer of Mixed tables can change a store."""
        raise UnsupportedError(
            f"{self.uri} is the {self._store} store of a Mixed table, which plain Iceberg commits "
            "would damage, so it is read-only: write to the Mixed table itself"
        )

    def turn(self) -> AbstractContextManager[None]:
        """Return a context that waits for nothing."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        """Raise, as ``require_writable`` does."""
        self.require_writable()


def read_only_store(handle: TableHandle, store: str) -> IcebergTable:
    """Return one store, ``base`` or ``change``, as a read-only Iceberg table."""
    return IcebergTable(replace(handle, pointer=_StorePointer(handle.pointer, store)))
