"""Files whose rows are what anybody reads who opens them: other engines may do it themselves."""

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
    """A Parquet file all of whose rows count, under the names and types the table has now."""

    storage: Storage
    path: str
    size_bytes: int
    may_hold_nan: bool = False
    """Whether a number may be NaN: it is larger than all others to Spark, and in no bounds that
    Arrow writes into a footer."""


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """The files of a scan that need nothing but a Parquet reader, and the splits of the others."""

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
    """Part splits into files that any Parquet reader may read for these columns, and the rest."""
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
                    require_no_link(storage, path)  # another program opens it
                    files.append(PlainFile(storage, path, file.file_size, may_hold_nan))
                else:
                    others = (*others, entry)
        if others:
            rest.append(replace(split, files=others))
    return PlainFiles(tuple(files), tuple(rest))


class _Finder:
    """What must hold of a file for a scan of some columns."""

    def __init__(self, handle: TableHandle, columns: frozenset[str]) -> None:
        schema = handle.schema
        self._schema = schema
        self._columns = columns
        # A file that was put into the table from a directory may lack these.
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
            lambda schema_id: self._fields(self._schema_at(schema_id)) == self._fields(schema)
        )

    def may_be_plain(self, file: DataFileMeta) -> bool:
        """Whether a file is all that a reader needs, if none of its rows is deleted."""
        return (
            format_of(file.file_name, file.file_name) is FileFormat.PARQUET
            and file.write_cols is None
            and not self._has_shared_maps
            and self._has_fields_of_now(file.schema_id)
            and all(self._holds(file, name) for name in self._partition_columns)
        )

    def may_hold_nan(self, file: DataFileMeta) -> bool:
        """Whether a number may be NaN: whoever knows that none is has written its bounds."""
        if not self._numbers:
            return False
        try:
            known = file_statistics(file, self._schema_at(file.schema_id).fields, self._numbers)
        except CorruptTableError:  # no row is asked for here, so none is lost
            return True
        return any(each.null_count != file.row_count and _is_open(each) for each in known)

    def _fields(self, schema: TableSchema) -> list[tuple[int, str, DataType]]:
        """What decides about the values a reader gets."""
        return [(f.id, f.name, f.type) for f in schema.fields if f.name in self._columns]

    def _holds(self, file: DataFileMeta, name: str) -> bool:
        """Whether a column is in a file for sure: its writer has counted the nulls."""
        if file.value_stats_cols is not None:
            return name in file.value_stats_cols
        counts = file.value_stats.null_counts
        position = self._schema.column_names.index(name)
        return counts is not None and position < len(counts) and counts[position] is not None


def _has_nan(data_type: DataType) -> bool:
    """Whether NaN is among the values of a type, or of one inside of it."""
    kinds = (
        pa.types.is_floating(leaf)
        for _, leaf in leaf_columns(pa.schema([("", to_arrow_type(data_type))]))
    )
    return any(kinds)


def _is_open(known: ColumnStatistics) -> bool:
    ends = (known.minimum, known.maximum)
    return any(end is None or (isinstance(end, float) and math.isnan(end)) for end in ends)
