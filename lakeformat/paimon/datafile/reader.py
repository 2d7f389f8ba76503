# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of data files, in the columns and types of a table's schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, TypeAlias, cast

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.changelog_packs import PackedPart
from lakeformat.files.data_file import (
    ALL_ROWS,
    BATCH_ROWS,
    KeepRows,
    naming_file,
    reader_of,
    stored_batches,
)
from lakeformat.files.file_format import format_of
from lakeformat.files.file_section import FileSection
from lakeformat.files.logical_arrays import PhysicalTypeError, to_logical
from lakeformat.files.orc.instants import InstantRule
from lakeformat.files.parquet.reader import read_parquet
from lakeformat.files.parquet.row_groups import PickGroups
from lakeformat.paimon.datafile.evolution import evolve_array, find_sources
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.storage import Storage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataField

__all__ = ["read_batches", "read_key_values"]

Fields: TypeAlias = tuple[DataField, ...]


def read_batches(
    storage: Storage,
    path: str,
    *,
    file_fields: Fields,
    wanted: Fields,
    write_cols: tuple[str, ...] | None = None,
    rows: range | None = None,
    keep: KeepRows | None = None,
    row_count: int | None = None,
    batch_rows: int = BATCH_ROWS,
    pick: PickGroups | None = None,
    encoded: Collection[str] = (),
    in_threads: bool = True,
    instants: InstantRule | None = None,
    section: PackedPart | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file as ``wanted`` columns; columns are matched by field id.

    ``file_fields`` is the schema that the file was written with; ``write_cols`` names the columns
    that the file has, None for all. ``rows`` is the range of row positions to read. ``keep``
    returns a mask of the rows to yield. ``rows=None`` and ``keep=None`` exclude no row. The file
    must have ``row_count`` rows, the number in its manifest entry; None skips the check. Row groups
    of a Parquet file that ``pick`` excludes are not read.

    Text columns named in ``encoded`` remain dictionary-encoded if the file stores them so. Columns
    of a Parquet file are decoded in threads if ``in_threads``. ``instants`` is the rule for
    TIMESTAMP_LTZ in ORC files. ``section`` is the part of a packed file to read; None for the
    whole file.

    Raise CorruptTableError for a missing or damaged file, and for a file with another number of
    rows than ``row_count``.
    """
    stored = file_fields
    if write_cols is not None:
        stored = tuple(field for field in file_fields if field.name in write_cols)
    columns = [
        _ColumnSource(source, field)
        for source, field in zip(find_sources(stored, wanted), wanted, strict=True)
    ]
    names = [column.source.name for column in columns if column.source is not None]
    if not names:  # a batch without columns has no rows
        names = [field.name for field in stored[:1]]
    uri, chosen = storage.uri(path), ALL_ROWS if rows is None else rows
    read = reader_of(format_of(path, uri), instants)
    if read is read_parquet:
        same = [c.source.name for c in columns if c.source and c.stays_same(encoded)]
        read = partial(read_parquet, pick=pick, encoded=frozenset(same), in_threads=in_threads)
    shape = _Shape(columns, to_arrow_schema(wanted), uri)
    with naming_file(uri), storage.open_input(path) as file:
        stream = file if section is None else _section(file, section)
        for start, batch in stored_batches(
            read, stream, list(dict.fromkeys(names)), batch_rows, chosen, row_count
        ):
            part = _select(batch, start, chosen, keep)
            if part.num_rows:
                yield shape.of(part)


def read_key_values(
    storage: Storage,
    path: str,
    *,
    file_fields: Fields,
    wanted: Fields,
    keep: KeepRows | None = None,
    row_count: int | None = None,
    batch_rows: int = BATCH_ROWS,
    pick: PickGroups | None = None,
    numbered: bool = True,
    encoded: Collection[str] = (),
    in_threads: bool = True,
    instants: InstantRule | None = None,
    section: PackedPart | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a primary-key table's file; ``read_batches`` describes the arguments except
    ``numbered``.

    The columns are ``_SEQUENCE_NUMBER`` (only if ``numbered``), ``_VALUE_KIND`` and ``wanted``.
    Keys are read from the table's own columns, which every file has, also with
    ``data-file.thin-mode``.
    """
    system = (SEQUENCE_NUMBER, VALUE_KIND)
    first = system if numbered else (VALUE_KIND,)
    return read_batches(
        storage,
        path,
        file_fields=system + file_fields,
        wanted=first + wanted,
        keep=keep,
        row_count=row_count,
        batch_rows=batch_rows,
        pick=pick,
        encoded=encoded,
        in_threads=in_threads,
        instants=instants,
        section=section,
    )


def _section(file: IO[bytes], section: PackedPart) -> IO[bytes]:
    return cast(IO[bytes], FileSection(file, section.start, section.size))


@dataclass(frozen=True, slots=True)
class _ColumnSource:
    """A wanted column, and the column of the file that it is read from.

    ``source`` is None if the file lacks the column.
    """

    source: DataField | None
    wanted: DataField

    def stays_same(self, names: Collection[str]) -> bool:
        return (
            self.wanted.name in names
            and self.source is not None
            and (self.source.type == self.wanted.type)
        )

    def is_stored_in(self, schema: pa.Schema, kind: pa.DataType) -> bool:
        """Return True if batches of ``schema`` have the column in the Arrow type ``kind``.

        Return True also for a dictionary-encoded column. In both cases the column is not converted.
        """
        if self.source is None:
            return False
        stored = schema.field(self.source.name).type
        is_same = stored == kind and self.source.type == self.wanted.type
        return is_same or pa.types.is_dictionary(stored)

    def read(self, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
        if self.source is None:
            return pa.nulls(batch.num_rows, kind)
        stored = batch.column(self.source.name)
        if self.is_stored_in(batch.schema, kind):
            return stored
        logical = to_logical(stored, self.source.type)
        try:
            return evolve_array(logical, self.source.type, self.wanted.type)
        except UnsupportedError:
            raise
        except InvalidRequestError as reason:
            raise InvalidRequestError(
                f"{reason}. Change the column back to {type_to_sql(self.source.type)} and correct "
                "the value; if the table has a primary key, also compact it. Then change the type "
                "again"
            ) from None


def _select(
    batch: pa.RecordBatch, start: int, rows: range, keep: KeepRows | None
) -> pa.RecordBatch:
    first = max(rows.start - start, 0)
    count = min(rows.stop - start, batch.num_rows) - first
    if count <= 0:
        return batch.slice(0, 0)
    batch = batch.slice(first, count)
    if keep is None:
        return batch
    mask = keep(start + first, count)
    return batch if mask.all() else batch.filter(pa.array(mask))


class _Shape:
    """Converts batches of a file to the wanted columns and types.

    Batches of one schema are checked once. If no column must be converted, the columns of each
    batch are then only selected by their positions.
    """

    def __init__(self, columns: list[_ColumnSource], schema: pa.Schema, uri: str) -> None:
        self._columns, self._schema, self._uri = columns, schema, uri
        self._seen: pa.Schema | None = None
        self._picked: list[int] | None = None
        self._alike = schema

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema != self._seen:
            self._look_at(batch.schema)
        if self._picked is not None:
            arrays = [batch.column(place) for place in self._picked]
            return pa.RecordBatch.from_arrays(arrays, schema=self._alike)
        arrays = [
            self._read(column, batch, field)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._with_types(arrays))

    def _look_at(self, stored: pa.Schema) -> None:
        self._seen, self._picked = stored, None
        pairs = list(zip(self._columns, self._schema, strict=True))
        if all(column.is_stored_in(stored, field.type) for column, field in pairs):
            names = [column.source.name for column in self._columns if column.source]
            self._picked = [stored.get_field_index(name) for name in names]
            self._alike = self._with_types([stored.field(place) for place in self._picked])

    def _with_types(self, given: Sequence[pa.Array | pa.Field]) -> pa.Schema:
        """Return the schema of the wanted columns with the types of ``given``.

        Only dictionary-encoded texts have another type than in the table.
        """
        kinds = [each.type for each in given]
        if kinds == self._schema.types:
            return self._schema
        fields = zip(self._schema, kinds, strict=True)
        return pa.schema([field.with_type(kind) for field, kind in fields])

    def _read(self, column: _ColumnSource, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        try:
            return column.read(batch, field.type)
        except (InvalidRequestError, UnsupportedError) as reason:
            raise type(reason)(f"column {field.name!r} of {self._uri}: {reason}") from reason
        except PhysicalTypeError as reason:
            raise PhysicalTypeError(f"column {field.name!r}: {reason}") from reason
