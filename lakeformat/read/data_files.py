"""The rows of one live file: where it is, how its schema was, which of its rows are deleted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa

from lakeformat.datafile.reader import BATCH_ROWS, read_batches, read_key_values
from lakeformat.datafile.row_groups import PickGroups
from lakeformat.errors import CorruptTableError
from lakeformat.handle import TableHandle
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.referrer import naming, referred_to_by
from lakeformat.metadata.schema_file import read_schema
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.partition import partition_path
from lakeformat.read.deletions import DeletedRows
from lakeformat.read.plan import find_manifest
from lakeformat.read.prune import Conjunction
from lakeformat.read.report import ScanReport
from lakeformat.read.row_groups import group_picker
from lakeformat.storage import Storage, resolve
from lakeformat.types import DataField

__all__ = ["DataFiles"]

Fields = tuple[DataField, ...]


class DataFiles:
    """Reads files of one snapshot of one table."""

    def __init__(
        self,
        handle: TableHandle,
        snapshot: Snapshot,
        deleted: DeletedRows,
        report: ScanReport | None = None,
    ) -> None:
        self._handle = handle
        self._report = ScanReport() if report is None else report
        self._snapshot = snapshot
        self._deleted = deleted
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )
        self._fields: Callable[[int], Fields] = cache(self._read_fields)

    def rows(
        self,
        entry: ManifestEntry,
        wanted: Fields,
        conditions: Conjunction = (),
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """The columns ``wanted`` of the rows that are not deleted, in file order.

        Row groups that cannot hold a row which meets all conditions are left out.
        """
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
                batch_rows=batch_rows,
                pick=self._picker(entry, conditions),
            )

    def key_values(
        self,
        entry: ManifestEntry,
        wanted: Fields,
        conditions: Conjunction = (),
        batch_rows: int = BATCH_ROWS,
        *,
        numbered: bool = True,
        encoded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The same of a primary-key table, after sequence number and kind of each row.

        The number is left out unless ``numbered``. Texts of the columns ``encoded`` come as
        dictionaries where the file has them so.
        """
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
                batch_rows=batch_rows,
                pick=self._picker(entry, conditions),
                numbered=numbered,
                encoded=encoded,
            )

    def _picker(self, entry: ManifestEntry, conditions: Conjunction) -> PickGroups:
        self._report.opened(entry.file.file_size)
        stored = self._fields(entry.file.schema_id)
        return group_picker(conditions, self._handle.schema.fields, stored, self._report)

    @contextmanager
    def _naming_manifest(self, entry: ManifestEntry) -> Iterator[None]:
        """Name manifest and snapshot too when a file is damaged; they are looked for only then."""
        try:
            yield
        except CorruptTableError as reason:
            handle, snapshot = self._handle, self._snapshot
            manifest = find_manifest(handle, snapshot, entry)
            source = (
                f"{manifest} of snapshot {snapshot.id}, written under schema-{entry.file.schema_id}"
            )
            if read_snapshot_if_present(handle.storage, handle.layout, snapshot.id) is None:
                source += "; that snapshot has expired meanwhile: scan a newer one"
            with referred_to_by(source):
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
