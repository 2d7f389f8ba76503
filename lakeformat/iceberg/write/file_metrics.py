# SPDX-License-Identifier: Apache-2.0
"""Statistics of one data file: sizes and counts of its footer, NaN and bounds of its rows.

A field inside of a list or a map has only its size, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.files.column_statistics import Detail, StatisticsMode, cut_upwards
from lakeformat.iceberg.metadata.partition_summary import least_and_most
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.types import Field, PrimitiveType, StructType, Type, inner_fields

__all__ = ["FileMetrics"]

_WITHOUT_BOUNDS = ("variant", "geometry", "geography", "unknown")


@dataclass(slots=True)
class _Leaf:
    """A column of a Parquet file."""

    id: int
    kind: PrimitiveType
    mode: StatisticsMode
    path: tuple[int, ...] | None
    """The places of the field and its structs, from the outside in; None inside of lists, maps."""
    nans: int = 0
    bounds: list[pa.Array] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        if self.path is None or self.mode.detail is Detail.NONE:
            return
        values = rows.column(self.path[0])
        if len(self.path) > 1:
            values = pc.struct_field(values, [*self.path[1:]])
        if pa.types.is_floating(values.type):
            self.nans += pc.sum(pc.is_nan(values)).as_py() or 0
        if self.mode.detail is Detail.BOUNDS and self.kind.name not in _WITHOUT_BOUNDS:
            ends = least_and_most(values)
            if ends is not None:
                self.bounds.append(ends)

    def ends(self) -> tuple[bytes | None, bytes | None]:
        """Return the lower and the upper bound; a bound is None if there is none."""
        if not self.bounds:
            return None, None
        found = least_and_most(pa.concat_arrays(self.bounds))
        lower, upper = single_value_bytes(found).to_pylist()
        length = self.mode.length
        if length is None or self.kind.name not in ("string", "binary", "fixed"):
            return lower, upper
        if self.kind.name == "string":
            highest = cut_upwards(upper.decode(), length)
            return lower.decode()[:length].encode(), None if highest is None else highest.encode()
        return lower[:length], cut_upwards(upper, length)


class FileMetrics:
    """Collects the statistics of a file while it is written."""

    def __init__(self, fields: tuple[Field, ...], modes: Mapping[int, StatisticsMode]) -> None:
        """``fields`` are the columns of the file; ``modes`` are by the ids of their leaves."""
        self._leaves = [
            leaf for place, each in enumerate(fields) for leaf in _leaves_of(each, (place,), modes)
        ]

    def add(self, rows: pa.Table) -> None:
        """Examine rows with exactly the columns."""
        for leaf in self._leaves:
            leaf.add(rows)

    def result(self, footer: pq.FileMetaData) -> dict[str, Any]:
        """Return the members of a manifest's entry; maps are lists of pairs."""
        found: dict[str, dict[int, Any]] = {
            name: {}
            for name in (
                "column_sizes",
                "value_counts",
                "null_value_counts",
                "nan_value_counts",
                "lower_bounds",
                "upper_bounds",
            )
        }
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        for place, leaf in enumerate(self._leaves):
            if leaf.mode.detail is not Detail.NONE:
                _describe(leaf, [group.column(place) for group in groups], found)
        members: dict[str, Any] = {name: sorted(each.items()) for name, each in found.items()}
        members["split_offsets"] = [_start(group.column(0)) for group in groups] or None
        return members


def _describe(
    leaf: _Leaf, chunks: list[pq.ColumnChunkMetaData], found: dict[str, dict[int, Any]]
) -> None:
    found["column_sizes"][leaf.id] = sum(chunk.total_compressed_size for chunk in chunks)
    if leaf.path is None:
        return
    found["value_counts"][leaf.id] = sum(chunk.num_values for chunk in chunks)
    statistics = [chunk.statistics for chunk in chunks]
    if all(each is not None and each.has_null_count for each in statistics):
        found["null_value_counts"][leaf.id] = sum(each.null_count for each in statistics)
    if leaf.kind.name in ("float", "double"):
        found["nan_value_counts"][leaf.id] = leaf.nans
    lower, upper = leaf.ends()
    if lower is not None:
        found["lower_bounds"][leaf.id] = lower
    if upper is not None:
        found["upper_bounds"][leaf.id] = upper


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the offset of the first page of a row group."""
    dictionary = chunk.dictionary_page_offset
    data = int(chunk.data_page_offset)
    return data if dictionary is None else min(int(dictionary), data)


def _leaves_of(
    each: Field, path: tuple[int, ...] | None, modes: Mapping[int, StatisticsMode]
) -> Iterator[_Leaf]:
    if isinstance(each.type, PrimitiveType):
        yield _Leaf(each.id, each.type, modes[each.id], path)
        return
    for place, inner in enumerate(inner_fields(each.type)):
        yield from _leaves_of(inner, _below(path, place, each.type), modes)


def _below(path: tuple[int, ...] | None, place: int, kind: Type) -> tuple[int, ...] | None:
    return (*path, place) if path is not None and isinstance(kind, StructType) else None
