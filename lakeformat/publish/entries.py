# SPDX-License-Identifier: Apache-2.0
"""Converts data files of a Paimon table to entries of an Iceberg manifest.

All files are converted at once, column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, entry_schema
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import StructType
from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import plain_name
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn, Positions
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.bounds import FileStatistics
from lakeformat.publish.requirements import WRITE_PARQUET
from lakeformat.types.types import DataField

__all__ = ["FileEntries"]

_Group: TypeAlias = tuple[int, tuple[str, ...] | None, bool]
"""The key of a group of files; the files of a group are converted together.

The key has the schema id, the names of the columns with statistics (None for all columns), and a
flag. The flag is False if the files have no statistics.
"""
_STATISTICS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class FileEntries:
    """Makes the manifest entries of one table."""

    handle: TableHandle
    location: str
    """The URI of the table, spelled as in its Iceberg metadata."""
    partition: StructType
    schemas: Callable[[int], tuple[TableSchema, Schema]]
    """Returns the Paimon schema and the Iceberg schema of a schema id."""

    def added(self, files: ManifestColumns) -> pa.Table:
        """Return manifest entries with the status ADDED, which inherit their sequence numbers.

        Raise ``UnsupportedError`` for a file that is not Parquet or has only some of the columns.
        """
        schema, rows = entry_schema(self.partition), len(files)
        if not rows:
            return schema.empty_table()
        _require_whole(files, self.handle.uri)
        columns: dict[str, pa.Array] = {
            "status": pa.repeat(pa.scalar(ADDED, pa.int32()), rows),
            "spec_id": pa.repeat(pa.scalar(0, pa.int32()), rows),
            "partition": self.partitions(files),
            "content": pa.repeat(pa.scalar(DATA, pa.int32()), rows),
            "file_path": self.paths(files),
            "file_format": pa.repeat(pa.scalar("PARQUET"), rows),
            "record_count": pa.array(files.row_count.numbers, pa.int64()),
            "file_size_in_bytes": pa.array(files.file_size.numbers, pa.int64()),
            **self._statistics(files),
        }
        return pa.Table.from_arrays(
            [columns.get(each.name, pa.nulls(rows, each.type)) for each in schema], schema=schema
        )

    def paths(self, files: ManifestColumns) -> pa.Array:
        """Return the URI of each file; raise ``CorruptTableError`` for a name with a slash."""
        names, layout = _texts(files.file_name), self.handle.layout
        if pc.any(has_slash := pc.match_substring(names, "/")).as_py():
            raise CorruptTableError(
                f"{self.handle.uri} cannot be published as Iceberg: a manifest names the data file "
                f"{names.filter(has_slash)[0].as_py()!r}, which has a slash in its name. Restore "
                "the manifest from a backup, or roll back to an earlier snapshot"
            )
        partition = files.partition.to_arrow().dictionary_encode()
        distinct = [
            partition_path(self.handle.schema, each) for each in partition.dictionary.to_pylist()
        ]
        buckets, bucket = np.unique(files.bucket.numbers, return_inverse=True)
        places = partition.indices.to_numpy().astype(np.int64) * len(buckets) + bucket
        used, place = np.unique(places, return_inverse=True)
        directories = [
            layout.bucket_below_root(
                int(buckets[each % len(buckets)]), distinct[each // len(buckets)]
            )
            for each in used.tolist()
        ]
        above = pa.array([f"{self.location}/{each}" for each in directories], pa.string())
        inside = pc.binary_join_element_wise(above.take(pa.array(place)), names, "/")
        return pc.coalesce(_texts(files.external_path), inside)

    def path(self, partition: bytes, bucket: int, name: str) -> str:
        """Return the URI of a data file in the table's directory."""
        directory = partition_path(self.handle.schema, partition)
        inside = self.handle.layout.bucket_below_root(bucket, directory)
        return f"{self.location}/{inside}/{plain_name(name)}"

    def partition_of(self, encoded: bytes) -> pa.StructArray:
        """Return the values of one partition, encoded as a BinaryRow, as an array of length one."""
        return self.decoded(pa.array([encoded], pa.large_binary()))

    def partitions(self, files: ManifestColumns) -> pa.StructArray:
        """Return the partition of each file."""
        values = files.partition.to_arrow().dictionary_encode()
        return self.decoded(values.dictionary).take(values.indices)

    def decoded(self, encoded: pa.Array) -> pa.StructArray:
        """Return the values of partitions that are encoded as BinaryRows."""
        kind = to_arrow_type(self.partition)
        if not self.partition.fields:
            return pa.array([{}] * len(encoded), kind)
        types = [field.type for field in partition_fields(self.handle.schema)]
        columns = decode_columns(encoded, types)
        cast = [column.cast(field.type) for column, field in zip(columns, kind, strict=True)]
        return pa.StructArray.from_arrays(cast, fields=list(kind))

    def _statistics(self, files: ManifestColumns) -> dict[str, pa.Array]:
        """Return the columns of statistics; files with the same columns are converted together."""
        groups = _groups(files)
        if not groups:
            return {}
        parts = [self._of_group(key, files.take(rows)) for key, rows in groups.items()]
        order = pa.array(np.argsort(np.concatenate([*groups.values()]), kind="stable"))
        return {
            name: pa.concat_arrays([part[name] for part in parts]).take(order)
            for name in _STATISTICS
        }

    def _of_group(self, key: _Group, files: ManifestColumns) -> dict[str, pa.Array]:
        schema_id, kept, has_statistics = key
        theirs, ours = self.schemas(schema_id)
        by_name = {field.name: field for field in theirs.fields}
        covered: list[DataField] = []
        if has_statistics:
            names = [*by_name] if kept is None else kept
            covered = [by_name[name] for name in names if name in by_name]
        return FileStatistics(files, ours, theirs.fields, covered).columns()


def _groups(files: ManifestColumns) -> dict[_Group, Positions]:
    has_statistics = files.value_min_values.sizes > len(EMPTY_ROW)
    keys = zip(
        files.schema_id.numbers.tolist(),
        files.value_stats_cols.texts(),
        has_statistics.tolist(),
        strict=True,
    )
    rows: dict[_Group, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return {key: np.array(members, np.int64) for key, members in rows.items()}


def _require_whole(files: ManifestColumns, table: str) -> None:
    is_parquet = pc.ends_with(_texts(files.file_name), ".parquet")
    if not pc.all(is_parquet, min_count=0).as_py():
        name = _texts(files.file_name).filter(pc.invert(is_parquet))[0].as_py()
        raise UnsupportedError(
            f"the data file {name} of {table} is not a Parquet file, and only Parquet files are "
            f"published: {WRITE_PARQUET}"
        )
    is_partial = files.write_cols.present
    if is_partial is None or is_partial.any():
        first = 0 if is_partial is None else int(is_partial.argmax())
        raise UnsupportedError(
            f"the data file {_texts(files.file_name)[first]} of {table} has only some of the "
            "columns (data evolution), which cannot be published: create a table without "
            "'data-evolution.enabled', and copy the rows"
        )


def _texts(column: BytesColumn) -> pa.Array:
    return column.to_arrow().cast(pa.binary()).cast(pa.string())
