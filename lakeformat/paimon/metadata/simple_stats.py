# SPDX-License-Identifier: Apache-2.0
"""Minimum, maximum and null count of columns, as manifests store them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.binary_row import FramedRows, decode_row, encode_row, frame_row, unframe_row
from lakeformat.types.types import DataType
from lakeformat.types.values import Value, values_from_arrow

__all__ = [
    "EMPTY_ROW",
    "EMPTY_STATS",
    "MOST_TESTED",
    "SIMPLE_STATS_FIELDS",
    "SimpleStats",
    "may_contain_any",
    "may_contain_partition",
    "partition_stats",
]

EMPTY_ROW = bytes(12)
"""A framed binary row without fields: its arity 0 as int32, then a header of eight zero bytes."""

MOST_TESTED = 100
"""The largest number of partitions that are compared with the bounds of each manifest."""

SIMPLE_STATS_FIELDS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {
        "name": "_NULL_COUNTS",
        "type": ["null", {"type": "array", "items": ["null", "long"]}],
        "default": None,
    },
]


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Minimum and maximum of some columns, as framed binary rows, and their null counts."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] | None = ()

    def to_record(self) -> dict[str, Any]:
        counts = None if self.null_counts is None else list(self.null_counts)
        return {
            "_MIN_VALUES": self.min_values,
            "_MAX_VALUES": self.max_values,
            "_NULL_COUNTS": counts,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SimpleStats:
        counts = record.get("_NULL_COUNTS")
        return cls(
            record["_MIN_VALUES"],
            record["_MAX_VALUES"],
            None if counts is None else tuple(counts),
        )


EMPTY_STATS = SimpleStats()
"""Statistics of no columns."""


def partition_stats(partitions: pa.Array, types: Sequence[DataType]) -> SimpleStats:
    """Return exact bounds and null counts of the partition columns.

    ``partitions`` are framed binary rows.
    """
    if not types:
        return EMPTY_STATS
    rows = FramedRows(partitions, types)
    columns = [rows.column(position) for position in range(len(types))]
    bounds = [_bounds(*pair) for pair in zip(columns, types, strict=True)]
    least, most = zip(*bounds, strict=True)
    return SimpleStats(
        frame_row(encode_row(least, types), len(types)),
        frame_row(encode_row(most, types), len(types)),
        tuple(column.null_count for column in columns),
    )


def may_contain_partition(stats: SimpleStats, partition: bytes, types: Sequence[DataType]) -> bool:
    """Return False if ``partition``, a framed binary row, is outside the bounds; otherwise True."""
    rows = [unframe_row(row) for row in (partition, stats.min_values, stats.max_values)]
    if any(arity != len(types) for arity, _ in rows):
        return True  # without bounds, no partition is excluded
    values = zip(*(decode_row(row, types) for _, row in rows), strict=True)
    # A missing bound or NaN cannot be compared, so it must not exclude the partition.
    return not any(
        None not in (value, least, most) and (value < least or value > most)
        for value, least, most in values
    )


def may_contain_any(
    stats: SimpleStats, partitions: Collection[bytes] | pa.Array, types: Sequence[DataType]
) -> bool:
    """Return False if all ``partitions``, which are framed binary rows, are outside the bounds.

    For more than ``MOST_TESTED`` partitions, return True without a test: to test each of them for
    each manifest would cost more than to read all manifests.
    """
    if len(partitions) > MOST_TESTED:
        return True
    rows = partitions.to_pylist() if isinstance(partitions, pa.Array) else partitions
    return any(may_contain_partition(stats, row, types) for row in rows)


def _bounds(column: pa.Array, data_type: DataType) -> tuple[Value, Value]:
    """Return the smallest and the largest value; (None, None) if all are null or one is NaN."""
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None, None  # NaN is sorted above every number, but cannot be compared
    found = pc.min_max(column)
    bounds = pa.array([found["min"], found["max"]], column.type)
    least, most = values_from_arrow(bounds, data_type)
    return least, most
