"""A scan: the rows of one snapshot, in whatever form the caller wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.datafile.reader import read_batches
from lakeformat.errors import InvalidRequestError
from lakeformat.handle import TableHandle
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.schema_file import read_schema
from lakeformat.metadata.snapshot import Snapshot
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

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows; memory holds one batch at a time."""
        for entry in self._files:
            yield from self._read(entry)

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """How many rows there are, from metadata alone."""
        return sum(entry.file.row_count for entry in self._files)

    @cached_property
    def _files(self) -> list[ManifestEntry]:
        return [] if self._snapshot is None else plan_files(self._handle, self._snapshot)

    @cached_property
    def _schemas(self) -> dict[int, tuple[DataField, ...]]:
        """Columns by schema id; files know the schema they were written with."""
        return {self._handle.schema.id: self._handle.schema.fields}

    def _read(self, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
        handle, file = self._handle, entry.file
        if file.schema_id not in self._schemas:
            older = read_schema(handle.storage, handle.layout, file.schema_id)
            self._schemas[file.schema_id] = older.fields
        path = handle.layout.data_file(entry.bucket, file.file_name)
        return read_batches(
            handle.storage, path, file_fields=self._schemas[file.schema_id], wanted=self._fields
        )


def _project(fields: tuple[DataField, ...], columns: Sequence[str] | None) -> tuple[DataField, ...]:
    if columns is None:
        return fields
    by_name = {field.name: field for field in fields}
    unknown = [name for name in columns if name not in by_name]
    if unknown or not columns or isinstance(columns, str):
        raise InvalidRequestError(
            f"columns must name some of {', '.join(by_name)}, got {columns!r}"
        )
    return tuple(by_name[name] for name in columns)
