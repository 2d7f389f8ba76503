"""A scan: the rows of one snapshot, in whatever form the caller wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.errors import InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.read.buckets import Bucket, visible_buckets
from lakeformat.read.data_files import DataFiles
from lakeformat.read.deletions import DeletedRows, find_deleted_rows
from lakeformat.read.merge import merge_last_row
from lakeformat.read.plan import plan_files
from lakeformat.types import DataField

if TYPE_CHECKING:
    import pandas

__all__ = ["Scan"]


class Scan:
    """The rows of a snapshot; nothing is read before a result is asked for."""

    def __init__(
        self, handle: TableHandle, snapshot: Snapshot | None, columns: Sequence[str] | None
    ) -> None:
        self._handle = handle
        self._snapshot = snapshot
        self._fields = _project(handle.schema.fields, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns the rows will have."""
        return to_arrow_schema(self._fields)

    @property
    def snapshot_id(self) -> int:
        """The snapshot that is read, as ``read_snapshot`` of a commit takes it; 0 if empty."""
        return 0 if self._snapshot is None else self._snapshot.id

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows; memory holds a row group, or a bucket where rows must be merged."""
        for bucket in self._buckets:
            yield from self._merged(bucket) if bucket.needs_merge else self._as_they_are(bucket)

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """How many rows there are: from metadata, unless rows must be merged.

        Whether the data files exist is not looked at.
        """
        return sum(
            self._count_merged(bucket) if bucket.needs_merge else self._count_files(bucket)
            for bucket in self._buckets
        )

    @cached_property
    def _buckets(self) -> list[Bucket]:
        if self._snapshot is None:
            return []
        return visible_buckets(self._handle.schema, plan_files(self._handle, self._snapshot))

    @cached_property
    def _deleted(self) -> DeletedRows:
        if self._snapshot is None:
            return DeletedRows(self._handle, ())
        return find_deleted_rows(self._handle, self._snapshot)

    @cached_property
    def _files(self) -> DataFiles:
        assert self._snapshot is not None, "without a snapshot there are no files"
        return DataFiles(self._handle, self._snapshot, self._deleted)

    def _as_they_are(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        for entry in bucket.files:
            yield from self._files.rows(entry, self._fields)

    def _merged(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        rows = self._merge(bucket, self._fields)
        yield from rows.select(self.schema.names).to_batches()

    def _merge(self, bucket: Bucket, wanted: tuple[DataField, ...]) -> pa.Table:
        keys = self._handle.schema.key_fields
        needed = (*keys, *(field for field in wanted if field not in keys))
        batches = [
            batch for entry in bucket.files for batch in self._files.key_values(entry, needed)
        ]
        if not batches:
            return to_arrow_schema(needed).empty_table()
        return merge_last_row(pa.Table.from_batches(batches), [field.name for field in keys])

    def _count_files(self, bucket: Bucket) -> int:
        return sum(entry.file.row_count - self._deleted.count(entry) for entry in bucket.files)

    def _count_merged(self, bucket: Bucket) -> int:
        return int(self._merge(bucket, ()).num_rows)


def _project(fields: tuple[DataField, ...], columns: Sequence[str] | None) -> tuple[DataField, ...]:
    if columns is None:
        return fields
    if not isinstance(columns, str):
        columns = list(columns)
    by_name = {field.name: field for field in fields}
    unknown = [name for name in columns if name not in by_name]
    if unknown or not columns or isinstance(columns, str):
        raise InvalidRequestError(
            f"columns must name some of {', '.join(by_name)}, got {columns!r}"
        )
    return tuple(by_name[name] for name in columns)
