# SPDX-License-Identifier: Apache-2.0
"""Manifest entries as columns for planning, and as Python objects on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Any, cast

import numpy as np

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Column,
    ListColumn,
    Mask,
    NumberColumn,
    Positions,
    Rows,
)
from lakeformat.paimon.metadata.manifest_columns.concat import Buffers, concat_columns
from lakeformat.paimon.metadata.manifest_columns.schema import COLUMN_PATHS, MANIFEST_SHAPE
from lakeformat.paimon.metadata.manifest_entry import FileKind, ManifestEntry
from lakeformat.paimon.metadata.simple_stats import SimpleStats

__all__ = ["ManifestColumns", "columns_of"]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the format's wall clock has no zone
_MILLI = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestColumns:
    """The entries of one or several manifests in commit order, one column per field."""

    kind: NumberColumn
    partition: BytesColumn
    bucket: NumberColumn
    total_buckets: NumberColumn
    file_name: BytesColumn
    file_size: NumberColumn
    row_count: NumberColumn
    min_key: BytesColumn
    max_key: BytesColumn
    key_min_values: BytesColumn
    key_max_values: BytesColumn
    key_null_counts: ListColumn
    value_min_values: BytesColumn
    value_max_values: BytesColumn
    value_null_counts: ListColumn
    min_sequence_number: NumberColumn
    max_sequence_number: NumberColumn
    schema_id: NumberColumn
    level: NumberColumn
    extra_files: ListColumn
    creation_time: NumberColumn
    """The local time of the writer in milliseconds, without a time zone."""
    delete_row_count: NumberColumn
    embedded_file_index: BytesColumn
    file_source: NumberColumn
    value_stats_cols: ListColumn
    external_path: BytesColumn
    first_row_id: NumberColumn
    write_cols: ListColumn
    write_cols_sequences: ListColumn

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def columns(self) -> dict[str, Column]:
        """Return every column by the name of its attribute."""
        return {name: getattr(self, name) for name in COLUMN_PATHS}

    @property
    def is_delete(self) -> Mask:
        """Return a mask of the entries that delete a file."""
        mask: Mask = self.kind.numbers == FileKind.DELETE
        return mask

    def take(self, rows: Rows) -> ManifestColumns:
        """Return the entries at the positions ``rows``."""
        taken: dict[str, Any] = {name: column.take(rows) for name, column in self.columns.items()}
        return ManifestColumns(**taken)

    def filter(self, mask: Mask) -> ManifestColumns:
        """Return the entries at which ``mask`` is True."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def entries(self, rows: Positions | None = None) -> list[ManifestEntry]:
        """Return the entries at the positions ``rows``, or all entries, as objects."""
        return list(_entries(self if rows is None else self.take(rows)))

    @classmethod
    def concat(cls, parts: Sequence[ManifestColumns]) -> ManifestColumns:
        """Return the entries of all ``parts``, in this order."""
        if not parts:
            return columns_of([])
        if len(parts) == 1:
            return parts[0]
        buffers: Buffers = {}
        joined: dict[str, Any] = {
            name: concat_columns([getattr(part, name) for part in parts], buffers)
            for name in COLUMN_PATHS
        }
        return cls(**joined)


def _entries(columns: ManifestColumns) -> Iterator[ManifestEntry]:
    files = _files(columns)
    kinds = [FileKind(kind) for kind in columns.kind.numbers.tolist()]
    partitions = _shared(columns.partition.values())
    buckets, totals = columns.bucket.numbers.tolist(), columns.total_buckets.numbers.tolist()
    for row in zip(kinds, partitions, buckets, totals, files, strict=True):
        yield ManifestEntry(*row)


_TEXTS = {"file_name", "extra_files", "value_stats_cols", "external_path", "write_cols"}
_OF_FILE = [field.name for field in fields(DataFileMeta)]


def _files(columns: ManifestColumns) -> Iterator[DataFileMeta]:
    made = {
        "key_stats": _stats(
            columns.key_min_values, columns.key_max_values, columns.key_null_counts
        ),
        "value_stats": _stats(
            columns.value_min_values, columns.value_max_values, columns.value_null_counts
        ),
        "creation_time": _times(columns.creation_time),
    }
    values = [made[name] if name in made else _values(columns, name) for name in _OF_FILE]
    for row in zip(*values, strict=True):
        yield DataFileMeta(**dict(zip(_OF_FILE, row, strict=True)))


def _values(columns: ManifestColumns, name: str) -> list[Any]:
    column = getattr(columns, name)
    values: list[Any] = column.texts() if name in _TEXTS else column.values()
    return [value or () for value in values] if name == "extra_files" else values


def _stats(least: BytesColumn, most: BytesColumn, nulls: ListColumn) -> list[SimpleStats]:
    """Return the statistics of each entry as an object.

    Equal statistics share one object; most statistics are empty.
    """
    rows = zip(least.values(), most.values(), nulls.values(), strict=True)
    made: dict[Any, SimpleStats] = {}
    found = []
    for row in rows:
        stats = made.get(row)
        if stats is None:
            stats = made[row] = SimpleStats(*cast(Any, row))
        found.append(stats)
    return found


def _times(column: NumberColumn) -> list[datetime | None]:
    return [None if millis is None else _EPOCH + millis * _MILLI for millis in column.values()]


def _shared(values: Sequence[Any]) -> list[Any]:
    first: dict[Any, Any] = {}
    return [first.setdefault(value, value) for value in values]


def columns_of(entries: Sequence[ManifestEntry]) -> ManifestColumns:
    """Return the columns of a sequence of entries."""
    return _columns_of(entries) if entries else _no_columns()


@cache
def _no_columns() -> ManifestColumns:
    """Return empty columns; all callers share one object, because columns are never changed."""
    return _columns_of(())


def _columns_of(entries: Sequence[ManifestEntry]) -> ManifestColumns:
    files = [entry.file for entry in entries]
    stats = {"key": [file.key_stats for file in files], "value": [f.value_stats for f in files]}
    values: dict[str, list[Any]] = {
        "kind": [int(entry.kind) for entry in entries],
        "partition": [entry.partition for entry in entries],
        "bucket": [entry.bucket for entry in entries],
        "total_buckets": [entry.total_buckets for entry in entries],
        "creation_time": [_millis(file.creation_time) for file in files],
    }
    for prefix, found in stats.items():
        values[f"{prefix}_min_values"] = [one.min_values for one in found]
        values[f"{prefix}_max_values"] = [one.max_values for one in found]
        values[f"{prefix}_null_counts"] = [one.null_counts for one in found]
    made: dict[str, Any] = {}
    for name, path in COLUMN_PATHS.items():
        given = values[name] if name in values else [*map(attrgetter(name), files)]
        made[name] = _column(path, given)
    return ManifestColumns(**made)


def _millis(time: datetime | None) -> int | None:
    if time is None:
        return None
    return ((time if time.tzinfo is None else time.replace(tzinfo=None)) - _EPOCH) // _MILLI


def _column(path: str, values: Sequence[Any]) -> Column:
    shape = MANIFEST_SHAPE[path]
    if shape.is_list:
        is_number = shape.kind == "number"
        return ListColumn.of_numbers(values) if is_number else ListColumn.of_texts(values)
    if shape.kind == "number":
        return NumberColumn.of(values)
    if shape.kind == "string":
        values = [None if value is None else value.encode() for value in values]
    return BytesColumn.of(values)


def from_decoded(decoded: Mapping[str, Column]) -> ManifestColumns:
    """Return the entries of ``decoded``, which maps the paths of Avro fields to their columns.

    Fields that an older writer did not write become null.
    """
    rows = len(decoded["_KIND"])
    made: dict[str, Any] = {
        name: decoded[path] if path in decoded else _missing(path, rows)
        for name, path in COLUMN_PATHS.items()
    }
    return ManifestColumns(**made)


def _missing(path: str, rows: int) -> Column:
    return _column(path, [None] * rows)
