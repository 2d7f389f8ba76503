# SPDX-License-Identifier: Apache-2.0
"""The columns of manifest entries that pruning needs, and the partitions of entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.nested_arrays import struct_children
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.types.arrow_memory import array_of

__all__ = [
    "EntryColumns",
    "is_unpartitioned",
    "partition_columns",
    "plain_values",
    "scopes",
    "spec_of",
]


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """The statistics in manifest entries, as columns."""

    entries: pa.Table

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    @property
    def record_count(self) -> pa.Array:
        """The number of rows of each file; null if it is unknown, which writers store as -1."""
        counts = self.entries.column("record_count").combine_chunks()
        return pc.if_else(pc.less(counts, 0), None, counts)

    def statistic(self, name: str, field_id: int) -> pa.Array:
        """Return a statistic of one column, such as ``lower_bounds``; null for files without it."""
        return map_entry(self.entries.column(name), field_id)


def partition_columns(entries: pa.Table) -> list[pa.Array]:
    """Return the partition values of ``entries``, as one array for each partition field."""
    partition = entries.column("partition").combine_chunks()
    return struct_children(partition)


def scopes(entries: pa.Table) -> list[str]:
    """Return a text for each entry that identifies its partition spec and its partition.

    Only entries of the same spec and partition have equal texts.
    """
    columns = map(plain_values, partition_columns(entries))
    specs = entries.column("spec_id").to_pylist()
    return [repr(parts) for parts in zip(specs, *columns, strict=True)]


def plain_values(values: pa.Array) -> list[Any]:
    """Return values as Python objects, in the order of the column; dates and times become numbers.

    Python's own dates and times end at the year 9999, and have no nanoseconds.
    """
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return list(values.to_pylist())


def is_unpartitioned(spec: PartitionSpec) -> bool:
    """Return True if a partition spec puts all files into one partition."""
    return all(parse_transform(f.transform).kind is TransformKind.VOID for f in spec.fields)


def spec_of(metadata: TableMetadata, entries: pa.Table) -> PartitionSpec:
    """Return the partition spec of entries, which must all have the same spec."""
    return metadata.spec_of(entries.column("spec_id")[0].as_py())


def map_entry(maps: pa.ChunkedArray, key: int) -> pa.Array:
    """Return the value of ``key`` in each map; null if the map is null or lacks the key."""
    parts = [_of_chunk(chunk, key) for chunk in maps.chunks]
    return pa.concat_arrays([pa.nulls(0, maps.type.item_type), *parts])


def _of_chunk(maps: pa.MapArray, key: int) -> pa.Array:
    offsets = maps.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.to_numpy()[first:last]
    places = np.flatnonzero(keys == key) + first
    rows = np.searchsorted(offsets, places, side="right") - 1
    found = np.full(len(maps), -1, np.int64)
    found[rows] = places
    return maps.items.take(pc.if_else(array_of(found >= 0), array_of(found), None))
