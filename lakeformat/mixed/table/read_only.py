# SPDX-License-Identifier: Apache-2.0
"""One store of a Mixed table as a read-only Iceberg table.

If a program commits to a store as to a plain Iceberg table, the names of its data files contain no
node and no transaction. In the base store the rows of such files would count as older than every
change. In the change store such files make the table unreadable, until a rollback of the change
store removes them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.mixed.read.store_files import has_foreign_files
from lakeformat.mixed.stores.properties import BASE, CHANGE
from lakeformat.tables.table import refuse_operation

if TYPE_CHECKING:
    from lakeformat.iceberg.table.change_stream import ChangeStream
    from lakeformat.tables.reference_reports import RollbackReport
    from lakeformat.tables.rollback_request import RollbackRequest

__all__ = ["read_only_store"]


class _StorePointer:
    """Reads the metadata of a store, and refuses to publish new metadata."""

    def __init__(self, pointer: MetadataPointer, store: str) -> None:
        self._pointer = pointer
        self._store = store

    @property
    def uri(self) -> str:
        return self._pointer.uri

    def load(self) -> LoadedMetadata:
        return self._pointer.load()

    def require_writable(self) -> NoReturn:
        """Raise ``UnsupportedError``, because only a writer of Mixed tables can change a store."""
        raise UnsupportedError(
            f"{self.uri} is the {self._store} store of a Mixed table, which plain Iceberg commits "
            "would damage, so it is read-only: write to the Mixed table itself"
        )

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        self.require_writable()


class _BaseStore(IcebergTable):
    """The base store: read-only. The consumers in its directory are those of the Mixed table."""

    instead = MappingProxyType(
        {
            **IcebergTable.instead,
            "consumers": "read changes of the Mixed table itself, or read the store without a "
            "consumer",
            "expire_snapshots": "expire snapshots of the Mixed table itself",
            "maintain": "maintain the Mixed table itself",
        }
    )

    @property
    def kind(self) -> str:
        return "the base store of a Mixed table"

    @property
    def consumers(self) -> NoReturn:
        """Raise ``UnsupportedError``, because the Mixed table keeps its consumers in the same
        directory.
        """
        raise refuse_operation(self, "consumers")

    def stream(self, *args: Any, consumer: str | None = None, **options: Any) -> ChangeStream:
        """Stream the changes of the store; raise ``UnsupportedError`` for a ``consumer``."""
        if consumer is not None:
            raise refuse_operation(self, "consumers")
        return super().stream(*args, **options)

    def expire_snapshots(self, *args: Any, **options: Any) -> NoReturn:
        """Raise ``UnsupportedError``, even for a dry run: expire snapshots of the Mixed table."""
        raise refuse_operation(self, "expire_snapshots")

    def maintain(self, *args: Any, **options: Any) -> NoReturn:
        """Raise ``UnsupportedError``, even for a dry run: maintain the Mixed table itself."""
        raise refuse_operation(self, "maintain")


class _ChangeStore(IcebergTable):
    """The change store, which is read-only, except for a rollback.

    A rollback is possible only while the store has files that are not from a writer of Mixed
    tables.
    """

    def __init__(self, handle: TableHandle) -> None:
        super().__init__(_unwritable(handle, CHANGE))
        self._writable = handle

    def _rollback(self, request: RollbackRequest) -> RollbackReport:
        from lakeformat.iceberg.rollback import rollback

        loaded = self._writable.load()
        metadata = loaded.metadata
        state = TableState(loaded.places, metadata, metadata.current_snapshot, metadata.schema)
        if not has_foreign_files(state):
            raise UnsupportedError(
                f"{self.location} is the change store of a Mixed table. It can be rolled back only "
                "while it has files that are not from a writer of Mixed tables. It has no such "
                "files, so nothing was changed. To read an earlier state of the table, use "
                "table.scan(as_of=…)"
            )
        return rollback(self._writable, request)


def read_only_store(handle: TableHandle, store: str) -> IcebergTable:
    """Return one store, ``base`` or ``change``, as a read-only Iceberg table.

    The change store can be rolled back only while it has files that are not from a writer of Mixed
    tables.
    """
    return _BaseStore(_unwritable(handle, BASE)) if store == BASE else _ChangeStore(handle)


def _unwritable(handle: TableHandle, store: str) -> TableHandle:
    return replace(handle, pointer=_StorePointer(handle.pointer, store))
