"""The rows of one live file: where it is, how its schema was, which of its rows are deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa

from lakeformat.datafile.reader import read_batches, read_key_values
from lakeformat.handle import TableHandle
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.schema_file import read_schema
from lakeformat.partition import partition_path
from lakeformat.read.deletions import DeletedRows
from lakeformat.storage import Storage, resolve
from lakeformat.types import DataField

__all__ = ["DataFiles"]

Fields = tuple[DataField, ...]


class DataFiles:
    """Reads files of one snapshot of one table."""

    def __init__(self, handle: TableHandle, deleted: DeletedRows) -> None:
        self._handle = handle
        self._deleted = deleted
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )
        self._fields: Callable[[int], Fields] = cache(self._read_fields)

    def rows(self, entry: ManifestEntry, wanted: Fields) -> Iterator[pa.RecordBatch]:
        """The columns ``wanted`` of the rows that are not deleted, in file order."""
        storage, path = self._place(entry)
        return read_batches(
            storage,
            path,
            file_fields=self._fields(entry.file.schema_id),
            wanted=wanted,
            write_cols=entry.file.write_cols,
            keep=self._deleted.keep(entry),
            row_count=entry.file.row_count,
        )

    def key_values(self, entry: ManifestEntry, wanted: Fields) -> Iterator[pa.RecordBatch]:
        """The same of a primary-key table, after sequence number and kind of each row."""
        storage, path = self._place(entry)
        return read_key_values(
            storage,
            path,
            file_fields=self._fields(entry.file.schema_id),
            wanted=wanted,
            keep=self._deleted.keep(entry),
            row_count=entry.file.row_count,
        )

    def _place(self, entry: ManifestEntry) -> tuple[Storage, str]:
        handle, file = self._handle, entry.file
        if file.external_path is None:
            directory = self._directory(entry.partition)
            return handle.storage, handle.layout.data_file(entry.bucket, file.file_name, directory)
        return resolve(file.external_path, handle.storage)

    def _read_fields(self, schema_id: int) -> Fields:
        handle = self._handle
        if schema_id == handle.schema.id:
            return handle.schema.fields
        return read_schema(handle.storage, handle.layout, schema_id).fields
