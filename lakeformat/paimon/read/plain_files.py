# SPDX-License-Identifier: Apache-2.0
"""Plain files: data files that any Parquet reader can read with the right result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.files.file_format import FileFormat, format_of
from lakeformat.files.parquet.int96_arrays import leaf_columns
from lakeformat.paimon.datafile.file_statistics import file_statistics
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.read.splits import Split
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import Storage
from lakeformat.storage.links import require_no_link
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import DataType

__all__ = ["PlainFile", "PlainFiles", "find_plain_files"]


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A Parquet file without deleted rows, with the table's current column names and types."""

    storage: Storage
    path: str
    size_bytes: int
    may_hold_nan: bool = False
    """True if a number may be NaN. Then Spark must not skip rows of this file by bounds.

    Spark sorts NaN above all numbers, but the bounds that Arrow writes ignore NaN.
    """


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """The plain files of a scan, and splits with its other files."""

    files: tuple[PlainFile, ...]
    rest: tuple[Split, ...]


def find_plain_files(
    handle: TableHandle,
    splits: Sequence[Split],
    columns: frozenset[str],
    *,
    deleted: Callable[[Split], DeletedRows],
    place: Callable[[ManifestEntry], tuple[Storage, str]],
) -> PlainFiles:
    """Return the plain files of ``splits``, and splits with the other files.

    A file that is plain for a scan of ``columns`` may not be plain for other columns. ``deleted``
    returns the deletion vectors of a split, ``place`` the storage and path of a file.
    """
    finder = _Finder(handle, columns)
    files: list[PlainFile] = []
    rest: list[Split] = []
    for split in splits:
        others = split.files
        if split.raw_convertible:
            deleted_rows = deleted(split)
            others = ()
            for entry in split.files:
                file = entry.file
                if finder.may_be_plain(file) and not deleted_rows.count(entry):
                    may_hold_nan = finder.may_hold_nan(file)
                    storage, path = place(entry)
                    require_no_link(storage, path)  # because another program will open the path
                    files.append(PlainFile(storage, path, file.file_size, may_hold_nan))
                else:
                    others = (*others, entry)
        if others:
            rest.append(replace(split, files=others))
    return PlainFiles(tuple(files), tuple(rest))


class _Finder:
    """Decides which files are plain (see ``PlainFile``) for a scan of the given columns."""

    def __init__(self, handle: TableHandle, columns: frozenset[str]) -> None:
        schema = handle.schema
        self._schema = schema
        self._columns = columns
        # Files migrated from partition directories may lack these.
        keys = () if schema.primary_keys else schema.partition_keys
        self._partition_columns = [name for name in keys if name in columns]
        layouts = (schema.options.get(f"fields.{name}.map.storage-layout") for name in columns)
        self._has_shared_maps = any(each not in (None, "default") for each in layouts)
        self._numbers = [f for f in schema.fields if f.name in columns and _has_nan(f.type)]
        self._schema_at: Callable[[int], TableSchema] = cache(
            lambda schema_id: (
                schema
                if schema_id == schema.id
                else read_schema(handle.storage, handle.layout, schema_id)
            )
        )
        self._has_fields_of_now: Callable[[int], bool] = cache(
            lambda schema_id: (
                self._fields(self._schema_at(schema_id)) == self._fields(schema)
                and _has_distinct_names(self._schema_at(schema_id))
            )
        )

    def may_be_plain(self, file: DataFileMeta) -> bool:
        """Return True if the file is plain, provided that none of its rows is deleted."""
        return (
            format_of(file.file_name, file.file_name) is FileFormat.PARQUET
            and file.write_cols is None
            and not self._has_shared_maps
            and self._has_fields_of_now(file.schema_id)
            and all(self._holds(file, name) for name in self._partition_columns)
        )

    def may_hold_nan(self, file: DataFileMeta) -> bool:
        """Return True if a number in the file may be NaN, because a column has no usable bounds."""
        if not self._numbers:
            return False
        try:
            known = file_statistics(file, self._schema_at(file.schema_id).fields, self._numbers)
        # True is always safe, so damaged statistics are not an error here.
        except CorruptTableError:
            return True
        return any(each.null_count != file.row_count and _is_open(each) for each in known)

    def _fields(self, schema: TableSchema) -> list[tuple[int, str, DataType]]:
        return [(f.id, f.name, f.type) for f in schema.fields if f.name in self._columns]

    def _holds(self, file: DataFileMeta, name: str) -> bool:
        """Return True if the statistics of a file show that it has the column ``name``."""
        if file.value_stats_cols is not None:
            return name in file.value_stats_cols
        counts = file.value_stats.null_counts
        position = self._schema.column_names.index(name)
        return counts is not None and position < len(counts) and counts[position] is not None


def _has_distinct_names(schema: TableSchema) -> bool:
    """Return True if no two columns have names that differ only by case.

    Some Parquet readers cannot read a file with such columns, even if they need none of them.
    """
    return len({name.lower() for name in schema.column_names}) == len(schema.column_names)


def _has_nan(data_type: DataType) -> bool:
    """Return True if a column of this type can hold NaN, also in a nested field."""
    kinds = (
        pa.types.is_floating(leaf)
        for _, leaf in leaf_columns(pa.schema([("", to_arrow_type(data_type))]))
    )
    return any(kinds)


def _is_open(known: ColumnStatistics) -> bool:
    ends = (known.minimum, known.maximum)
    return any(end is None or (isinstance(end, float) and math.isnan(end)) for end in ends)
