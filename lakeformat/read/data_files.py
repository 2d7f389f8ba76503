"""The rows of one live file: where it is, how its schema was, which of its rows are deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa

from lakeformat.datafile.reader import read_batches, read_key_values
from lakeformat.errors import CorruptTableError
from lakeformat.handle import TableHandle
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.referrer import naming, referred_to_by
from lakeformat.metadata.schema_file import read_schema
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.partition import partition_path
from lakeformat.read.deletions import DeletedRows
from lakeformat.read.plan import find_manifest
from lakeformat.storage import Storage, resolve
from lakeformat.types import DataField

__all__ = ["DataFiles"]

Fields = tuple[DataField, ...]


class DataFiles:
    """Reads files of one snapshot of one table."""

    def __init__(self, handle: TableHandle, snapshot: Snapshot, deleted: DeletedRows) -> None:
        self._handle = handle
        self._snapshot = snapshot
        self._deleted = deleted
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )
        self._fields: Callable[[int], Fields] = cache(self._read_fields)

    def rows(self, entry: ManifestEntry, wanted: Fields) -> Iterator[pa.RecordBatch]:
        """The columns ``wanted`` of the rows that are not deleted, in file order."""
        keep = self._deleted.keep(entry)
        with self._naming_manifest(entry):
            storage, path = self._place(entry)
            yield from read_batches(
                storage,
                path,
                file_fields=self._fields(entry.file.schema_id),
                wanted=wanted,
                write_cols=entry.file.write_cols,
                keep=keep,
                row_count=entry.file.row_count,
            )

    def key_values(self, entry: ManifestEntry, wanted: Fields) -> Iterator[pa.RecordBatch]:
        """The same of a primary-key table, after sequence number and kind of each row."""
        keep = self._deleted.keep(entry)
        with self._naming_manifest(entry):
            storage, path = self._place(entry)
            yield from read_key_values(
                storage,
                path,
                file_fields=self._fields(entry.file.schema_id),
                wanted=wanted,
                keep=keep,
                row_count=entry.file.row_count,
            )

    @contextmanager
    def _naming_manifest(self, entry: ManifestEntry) -> Iterator[None]:
        """Name the manifest too when its file is damaged; it is looked for only then."""
        try:
            yield
        except CorruptTableError as reason:
            manifest = find_manifest(self._handle, self._snapshot, entry)
            with referred_to_by(f"{manifest}, written under schema-{entry.file.schema_id}"):
                raise CorruptTableError(str(reason)) from reason

    def _place(self, entry: ManifestEntry) -> tuple[Storage, str]:
        handle, file = self._handle, entry.file
        if file.external_path is None:
            with naming(f"_PARTITION of data file {file.file_name}"):
                directory = self._directory(entry.partition)
            return handle.storage, handle.layout.data_file(entry.bucket, file.file_name, directory)
        return resolve(file.external_path, handle.storage)

    def _read_fields(self, schema_id: int) -> Fields:
        handle = self._handle
        if schema_id == handle.schema.id:
            return handle.schema.fields
        return read_schema(handle.storage, handle.layout, schema_id).fields
