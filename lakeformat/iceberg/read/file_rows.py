# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a data file or delete file, with the columns and types of a schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import UnsupportedError
from lakeformat.files.data_file import (
    ALL_ROWS,
    BATCH_ROWS,
    KeepRows,
    ReadFile,
    naming_file,
    reader_of,
    stored_batches,
)
from lakeformat.files.file_format import FileFormat
from lakeformat.files.logical_arrays import PhysicalTypeError
from lakeformat.files.parquet.reader import read_parquet
from lakeformat.files.parquet.row_groups import CountGroups, Footer, PickGroups
from lakeformat.iceberg.arrow_types import to_arrow_field, to_arrow_type
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.column_values import column_values, default_value
from lakeformat.iceberg.read.row_positions import RowPositions
from lakeformat.iceberg.read.stored_fields import (
    NameMapping,
    StoredField,
    parse_name_mapping,
    stored_fields,
)
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.prune import Conjunction, Mask
from lakeformat.tables.row_groups import group_picker
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.types import DataField

__all__ = [
    "LAST_UPDATED",
    "LINEAGE",
    "POSITION",
    "ROW_ID",
    "FileRows",
    "Lineage",
    "RowGroupPruning",
    "file_rows_of",
    "lineage_of",
]

_NAME_MAPPING = "schema.name-mapping.default"
POSITION = Field(2_147_483_645, "_pos", PrimitiveType("long"), required=True)
"""The position of a row in its file, which is calculated, because no file stores it."""

ROW_ID = Field(2_147_483_540, "_row_id", PrimitiveType("long"))
LAST_UPDATED = Field(2_147_483_539, "_last_updated_sequence_number", PrimitiveType("long"))
LINEAGE = (ROW_ID, LAST_UPDATED)
"""The columns of row lineage since version 3; a file stores them only for rewritten rows."""


_FIRST_WITH_LINEAGE = 3
"""The first format version with row lineage."""


def lineage_of(metadata: TableMetadata) -> tuple[Field, ...]:
    """Return the columns of row lineage that a scan can name; empty before version 3."""
    return LINEAGE if metadata.format_version >= _FIRST_WITH_LINEAGE else ()


@dataclass(frozen=True, slots=True)
class Lineage:
    """Calculates the row lineage of rows for which the file does not store it."""

    first_row_id: int | None
    sequence_number: int

    def values(self, column: Field, start: int, rows: int) -> pa.Array:
        """Return a column of row lineage for ``rows`` rows of the file, from position ``start`` on.

        All values are null if the file has no first row id, as before version 3.
        """
        if self.first_row_id is None:
            return pa.nulls(rows, pa.int64())
        if column == ROW_ID:
            first = self.first_row_id + start
            return array_of(np.arange(first, first + rows, dtype=np.int64))
        return pa.repeat(pa.scalar(self.sequence_number, pa.int64()), rows)


@dataclass(slots=True)
class _Chosen:
    """Chooses the columns to read from one file."""

    wanted: Sequence[Field]
    mapping: NameMapping | None
    stored: dict[int, StoredField] = field(default_factory=dict)
    """The columns of the file, by field id."""

    def __call__(self, schema: pa.Schema) -> list[str]:
        """Return the names of the columns to read; at least one, so that the rows can be counted.

        Raise ``ValueError`` if two columns of the file have the same field id.
        """
        columns = stored_fields(schema, self.mapping)
        ids = Counter(each.id for each in columns if each.id is not None)
        if repeated := [each for each in ids if ids[each] > 1]:
            raise ValueError(f"it has more than one column of the field id {min(repeated)}")
        self.stored.update((each.id, each) for each in columns if each.id is not None)
        names = [self.stored[each.id].name for each in self.wanted if each.id in self.stored]
        return [*dict.fromkeys(names)] or [column.name for column in columns[:1]]


@dataclass(frozen=True, slots=True)
class RowGroupPruning:
    """Skips row groups of Parquet files by conditions, and counts row groups for a report."""

    conditions: Conjunction
    fields: Sequence[DataField]
    """The columns that conditions can name."""
    report: ScanReport

    def count(self, groups: int, size_bytes: int) -> None:
        """Count a completely read file of ``groups`` row groups and ``size_bytes`` bytes."""
        self.report.picked(groups, groups, size_bytes)

    def picker(self, columns: Mapping[int, StoredField]) -> PickGroups:
        """Return a function that selects the row groups of a file.

        ``columns`` are the columns of the file by field id. The dict may be empty at this call, but
        must be filled when the returned function is called.
        """

        def pick(footer: Footer, names: Sequence[str]) -> Mask:
            stored = [
                replace(each, name=columns[each.id].name)
                for each in self.fields
                if each.id in columns
            ]
            return group_picker(self.conditions, self.fields, stored, self.report)(footer, names)

        return pick


@dataclass(frozen=True, slots=True)
class FileRows:
    """Reads data files and delete files of one table."""

    places: FilePlaces
    mapping: NameMapping | None = None

    def read(
        self,
        path: str,
        file_format: FileFormat,
        wanted: Sequence[Field],
        *,
        row_count: int | None = None,
        keep: KeepRows | None = None,
        constants: Mapping[int, pa.Scalar] | None = None,
        lineage: Lineage | None = None,
        pruning: RowGroupPruning | None = None,
        rows: RowPositions | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a file with the columns ``wanted``, which must not be empty.

        ``keep`` is called for each batch, with the position of its first row and its number of
        rows. It returns a mask of the rows to stream. With ``rows``, exactly these rows are
        streamed, and ``keep`` is ignored.
        ``constants`` has the values, by field id, of columns that the file may lack. ``row_count``
        is the number of rows, if it is known. Raise ``CorruptTableError``, which names the file, if
        the file is missing or damaged.
        """
        storage, place = self.places.place(path)
        chosen = _Chosen(wanted, self.mapping)
        schema = pa.schema([to_arrow_field(each) for each in wanted])
        pick: PickGroups | None = None
        count: CountGroups | None = None
        if rows is not None:
            keep, pick = rows.keep, rows.pick
        elif pruning is not None and pruning.conditions:
            pick = pruning.picker(chosen.stored)
        elif pruning is not None:
            count = pruning.count
        with naming_file(path), storage.open_input(place) as stream:
            read = self._reader(file_format, pick, count)
            for start, batch in stored_batches(
                read, stream, chosen, BATCH_ROWS, ALL_ROWS, row_count
            ):
                columns = [
                    _column(each, batch, start, chosen.stored, constants or {}, lineage)
                    for each in wanted
                ]
                found = pa.RecordBatch.from_arrays(columns, schema=schema)
                yield found if keep is None else _kept(found, keep(start, batch.num_rows))

    def nullable_ids(self, path: str, file_format: FileFormat) -> set[int]:
        """Return the field ids of the columns in which a file can have nulls. No rows are read.

        Raise ``CorruptTableError``, which names the file, if it is missing or damaged.
        """
        found: set[int] = set()

        def choose(schema: pa.Schema) -> list[str]:
            columns = zip(schema, stored_fields(schema, self.mapping), strict=True)
            found.update(
                stored.id for column, stored in columns if column.nullable and stored.id is not None
            )
            return [*schema.names[:1]]

        storage, place = self.places.place(path)
        with naming_file(path), storage.open_input(place) as stream:
            next(reader_of(file_format)(stream, choose, 1, range(0)), None)
        return found

    def _reader(
        self, file_format: FileFormat, pick: PickGroups | None, count: CountGroups | None
    ) -> ReadFile:
        read = reader_of(file_format)
        if read is not read_parquet:
            return read
        return partial(read_parquet, pick=pick, count=count)


def file_rows_of(places: FilePlaces, properties: Mapping[str, str]) -> FileRows:
    """Return the reader for a table's files, with the name mapping of the table properties.

    Raise ``CorruptTableError`` if the name mapping is not valid.
    """
    text = properties.get(_NAME_MAPPING)
    return FileRows(places, None if text is None else parse_name_mapping(text))


def _column(
    wanted: Field,
    batch: pa.RecordBatch,
    start: int,
    stored: Mapping[int, StoredField],
    constants: Mapping[int, pa.Scalar],
    lineage: Lineage | None,
) -> pa.Array:
    if wanted == POSITION:
        return array_of(np.arange(start, start + batch.num_rows, dtype=np.int64))
    found = None
    if wanted.id in stored:
        column = stored[wanted.id]
        try:
            found = column_values(batch.column(column.name), column, wanted.type)
        except (PhysicalTypeError, UnsupportedError) as reason:
            raise type(reason)(f"column {wanted.name!r}: {reason}") from reason
    if lineage is not None and wanted in LINEAGE:
        own = lineage.values(wanted, start, batch.num_rows)
        return own if found is None else pc.coalesce(found, own)
    if found is not None:
        return found
    if wanted.id in constants:
        return pa.repeat(constants[wanted.id].cast(to_arrow_type(wanted.type)), batch.num_rows)
    return default_value(wanted, batch.num_rows)


def _kept(rows: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(array_of(mask))
