# SPDX-License-Identifier: Apache-2.0
"""Reads single data files: finds their path and schema, skips row groups and deleted rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial

import pyarrow as pa

from lakeformat.errors import CorruptTableError, LakeError
from lakeformat.files.changelog_packs import packed_part
from lakeformat.files.data_file import BATCH_ROWS, KeepRows
from lakeformat.files.file_format import FileFormat
from lakeformat.files.orc.instants import InstantRule
from lakeformat.files.parquet.row_groups import PickGroups
from lakeformat.paimon.datafile.instant_bounds import instant_bounds, instant_rule
from lakeformat.paimon.datafile.reader import read_batches, read_key_values
from lakeformat.paimon.file_places import data_file_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.referrer import naming, referred_to_by
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_fields, partition_path, partition_values
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.read.plan import find_manifest
from lakeformat.rows.prune import Conjunction
from lakeformat.storage import Storage
from lakeformat.tables.row_groups import group_picker
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.types import DataField
from lakeformat.types.values import values_to_arrow

__all__ = ["DataFiles"]

Fields = tuple[DataField, ...]


class DataFiles:
    """Reads data files of one table; ``snapshot=None`` for files that no snapshot has yet."""

    def __init__(
        self,
        handle: TableHandle,
        snapshot: Snapshot | None,
        deleted: DeletedRows,
        report: ScanReport | None = None,
    ) -> None:
        self._handle = handle
        self._report = report
        self._snapshot = snapshot
        self._deleted = deleted
        self._directory: Callable[[bytes], str] = cache(
            lambda partition: partition_path(handle.schema, partition)
        )
        self._fields: Callable[[int], Fields] = cache(self._read_fields)
        self._instants = instant_rule(handle.options)

    def rows(
        self,
        entry: ManifestEntry,
        wanted: Fields,
        conditions: Conjunction = (),
        batch_rows: int = BATCH_ROWS,
        *,
        with_deleted: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the columns ``wanted`` of the rows of a file, in file order.

        Row groups in which no row can meet all conditions are skipped; single rows are not compared
        with the conditions. Deleted rows are skipped unless ``with_deleted`` is set.
        """
        keep = None if with_deleted else self._deleted.keep(entry)
        file_fields = self._fields(entry.file.schema_id)
        keys = self._handle.schema.partition_keys
        others = tuple(field for field in file_fields if field.name not in keys)
        constants, asked = self._constants(entry, wanted) if others else {}, wanted
        if constants:
            # Files migrated from partition directories lack the partition columns.
            file_fields = others
            asked = tuple(field for field in wanted if field.name not in constants)
            asked = asked or others[:1]  # a batch without columns has no rows
        with self._naming_manifest(entry):
            storage, path = self.place(entry)
            batches = read_batches(
                storage,
                path,
                file_fields=file_fields,
                wanted=asked,
                write_cols=entry.file.write_cols,
                keep=keep,
                row_count=entry.file.row_count,
                batch_rows=batch_rows,
                pick=self._picker(entry, conditions),
                in_threads=self._handle.environment.has_idle_cores,
                instants=self._instants_of(entry.file),
            )
            for batch in self._until_given_up(batches):
                yield _with_constants(batch, wanted, constants) if constants else batch

    def _constants(self, entry: ManifestEntry, wanted: Fields) -> dict[str, pa.Array]:
        """Return the partition value of each wanted partition column, as an array of length one.

        Return an empty dict for a table with a primary key.
        """
        schema = self._handle.schema
        names = {field.name for field in wanted} & set(schema.partition_keys)
        if schema.primary_keys or not names:
            return {}
        with naming(f"_PARTITION of data file {entry.file.file_name}"):
            values = partition_values(schema, entry.partition)
            pairs = zip(partition_fields(schema), values, strict=True)
            return {
                field.name: values_to_arrow([value], field.type)
                for field, value in pairs
                if field.name in names
            }

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
        """Stream the rows of a primary-key table's file: sequence number, row kind, then
        ``wanted``.

        Row groups and deleted rows are skipped as by ``rows``. Without ``numbered`` the sequence
        number is omitted. Text columns named in ``encoded`` remain dictionary-encoded if the file
        stores them so.
        """
        keep = self._deleted.keep(entry)
        with self._naming_manifest(entry):
            storage, path = self.place(entry)
            batches = read_key_values(
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
                in_threads=self._handle.environment.has_idle_cores,
                instants=self._instants_of(entry.file),
                section=packed_part(entry.file.file_name),
            )
            yield from self._until_given_up(batches)

    def _instants_of(self, file: DataFileMeta) -> InstantRule | None:
        """Return the rule for legacy timestamps of an ORC file.

        Return None for other files, or if ``orc.timestamp-ltz.legacy.type`` is false.
        """
        if not self._instants.is_legacy or not file.file_name.endswith(FileFormat.ORC):
            return None
        fields = self._fields(file.schema_id)
        return replace(self._instants, bounds=partial(instant_bounds, file, fields))

    def _until_given_up(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self._handle.environment.is_given_up():
                raise LakeError(f"reading {self._handle.uri} was cancelled")
            yield batch

    def _picker(self, entry: ManifestEntry, conditions: Conjunction) -> PickGroups | None:
        """Return a function that picks the row groups to read and updates the scan report.

        Return None if there are neither conditions nor a scan report: then all groups are read.
        """
        if self._report is None and not conditions:
            return None
        report = self._report or ScanReport()
        report.opened(entry.file.file_size)
        stored = self._fields(entry.file.schema_id)
        return group_picker(conditions, self._handle.schema.fields, stored, report)

    @contextmanager
    def _naming_manifest(self, entry: ManifestEntry) -> Iterator[None]:
        """Add the manifest and the snapshot of a file to the message of a CorruptTableError."""
        try:
            yield
        except CorruptTableError as reason:
            handle, snapshot = self._handle, self._snapshot
            if snapshot is None:
                raise
            manifest = find_manifest(handle, snapshot, entry)
            schema = f"schema-{entry.file.schema_id}"
            source = f"{manifest} of snapshot {snapshot.id}; the file's schema is {schema}"
            with referred_to_by(source):
                raise CorruptTableError(str(reason)) from reason

    def has_fields_of_table(self, file: DataFileMeta) -> bool:
        """Return True if the schema of a file has the current columns of the table."""
        return self._fields(file.schema_id) == self._handle.schema.fields

    def stored_ids(self, file: DataFileMeta) -> frozenset[int]:
        """Return the field ids of the columns that a file contains."""
        fields, names = self._fields(file.schema_id), file.write_cols
        return frozenset(field.id for field in fields if names is None or field.name in names)

    def keep(self, entry: ManifestEntry) -> KeepRows | None:
        """Return a function whose masks are True for live rows; None if no row is deleted."""
        return self._deleted.keep(entry)

    def place(self, entry: ManifestEntry) -> tuple[Storage, str]:
        """Return storage and path of a data file."""
        handle, file = self._handle, entry.file
        with naming(f"_PARTITION of data file {file.file_name}"):
            directory = self._directory(entry.partition)
        return data_file_place(handle, entry.bucket, file, directory)

    def _read_fields(self, schema_id: int) -> Fields:
        handle = self._handle
        if schema_id == handle.schema.id:
            return handle.schema.fields
        return read_schema(handle.storage, handle.layout, schema_id).fields


def _with_constants(
    batch: pa.RecordBatch, wanted: Fields, constants: dict[str, pa.Array]
) -> pa.RecordBatch:
    """Return a batch of the columns ``wanted``, in their order.

    The value of a column in ``constants`` is repeated for each row. The other columns come from
    ``batch``.
    """
    schema = to_arrow_schema(wanted)
    arrays = []
    for field in schema:
        if field.name in constants:
            arrays.append(pa.repeat(constants[field.name][0].cast(field.type), batch.num_rows))
        else:
            arrays.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
