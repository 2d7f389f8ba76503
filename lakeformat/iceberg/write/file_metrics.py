# SPDX-License-Identifier: Apache-2.0
"""Collects the statistics of one data file.

Sizes and counts are read from its footer, NaN counts from its rows, and bounds from both. For row
groups copied from other files, the manifest entries of these files are read instead of the rows.
For a field inside of a list or a map only the size is stored, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.files.column_statistics import Detail, StatisticsMode, cut_upwards
from lakeformat.files.parquet.footer_statistics import WIDEST_IN_FOOTER
from lakeformat.files.parquet.row_groups import bounds_of
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.partition_summary import least_and_most
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.read.entry_columns import EntryColumns
from lakeformat.iceberg.read.single_values import single_values
from lakeformat.iceberg.types import Field, PrimitiveType, StructType, Type, inner_fields

__all__ = ["FileMetrics"]

_BOUNDS = ("lower_bounds", "upper_bounds")
_WITHOUT_BOUNDS = ("variant", "geometry", "geography", "unknown")
_IN_FOOTER = frozenset(
    {
        *("int", "long", "float", "double", "decimal", "date", "time", "string"),
        *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"),
    }
)
"""The types whose bounds in a footer are valid as bounds of Iceberg."""


@dataclass(slots=True)
class _Leaf:
    """The statistics of one leaf column of a Parquet file."""

    id: int
    kind: PrimitiveType
    mode: StatisticsMode
    path: tuple[int, ...] | None
    """The positions of the field in its structs, outermost first; None inside of a list or a map.
    """
    nans: int | None = 0
    """The number of NaN; None if it is unknown."""
    bounds: list[pa.Array] = field(default_factory=list)
    is_in_footer: bool = False
    """True if the bounds of some rows are not in ``bounds``, but only in the footer."""
    unknown: set[str] = field(default_factory=set)
    """The bounds (``lower_bounds``, ``upper_bounds``) that are unknown although a row has a value.
    """

    def add(self, rows: pa.Table) -> None:
        if self.path is None or self.mode.detail is Detail.NONE:
            return
        values = rows.column(self.path[0])
        if len(self.path) > 1:
            values = pc.struct_field(values, [*self.path[1:]])
        if pa.types.is_floating(values.type):
            self.nans = (self.nans or 0) + (pc.sum(pc.is_nan(values)).as_py() or 0)
        if not self._has_bounds:
            return
        if self.kind.name in _IN_FOOTER and not _may_be_wide(values):
            self.is_in_footer = True
        elif (ends := least_and_most(values)) is not None:
            self.bounds.append(ends)

    def add_files(self, entries: EntryColumns) -> None:
        if self.path is None or self.mode.detail is Detail.NONE:
            return
        values, nulls, nans = (
            entries.statistic(f"{name}_counts", self.id)
            for name in ("value", "null_value", "nan_value")
        )
        if self.kind.name in ("float", "double"):
            self.nans = None if nans.null_count else pc.sum(nans).as_py()
        if self._has_bounds:
            without = pc.add(nulls, pc.coalesce(nans, 0))
            self._add_bounds(entries, pc.fill_null(pc.less(without, values), True))

    def _add_bounds(self, entries: EntryColumns, needed: pa.Array) -> None:
        """Add the bounds of files.

        ``needed`` is True for the files that have values other than null and NaN.
        """
        ends = [single_values(entries.statistic(each, self.id), self.kind) for each in _BOUNDS]
        is_wrong = pc.fill_null(pc.greater(*ends), False)
        for name, found in zip(_BOUNDS, ends, strict=True):
            is_missing = pc.or_(found.is_null(nan_is_null=True), is_wrong)
            if pc.any(pc.and_(needed, is_missing)).as_py():
                self.unknown.add(name)
        self.bounds += ends

    @property
    def _has_bounds(self) -> bool:
        return self.mode.detail is Detail.BOUNDS and self.kind.name not in _WITHOUT_BOUNDS

    def ends(self, statistics: Sequence[pq.Statistics]) -> tuple[bytes | None, bytes | None]:
        """Return the lower and the upper bound, each None if it is unknown.

        ``statistics`` are the statistics of the column in the footer, one for each row group.
        """
        bounds = [*self.bounds]
        if self.is_in_footer:
            known = [each for each in statistics if each.has_min_max]
            bounds += bounds_of(known, to_arrow_type(self.kind))
        found = least_and_most(pa.concat_arrays(bounds)) if bounds else None
        if found is None:
            return None, None
        lower, upper = single_value_bytes(found).to_pylist()
        if (length := self.mode.length) is not None:
            lower, upper = _cut(self.kind.name, lower, upper, length)
        lowest, highest = _BOUNDS
        return None if lowest in self.unknown else lower, None if highest in self.unknown else upper


def _cut(kind: str, lower: bytes, upper: bytes, length: int) -> tuple[bytes, bytes | None]:
    """Return the bounds; the bounds of strings and binary values are cut to ``length``.

    ``length`` counts the characters of a string, and the bytes of a binary value. The upper bound
    is None if it cannot be cut. Bounds of all other types are unchanged.
    """
    if kind == "string":
        highest = cut_upwards(upper.decode(), length)
        return lower.decode()[:length].encode(), None if highest is None else highest.encode()
    if kind in ("binary", "fixed"):
        return lower[:length], cut_upwards(upper, length)
    return lower, upper


def _may_be_wide(values: pa.Array) -> bool:
    if not pa.types.is_string(values.type):
        return False
    longest = pc.max(pc.binary_length(values)).as_py()
    return longest is not None and longest > WIDEST_IN_FOOTER


class FileMetrics:
    """Collects the statistics of a file while it is written."""

    def __init__(self, fields: tuple[Field, ...], modes: Mapping[int, StatisticsMode]) -> None:
        """Start the statistics of a file with the columns ``fields``.

        ``modes`` has the statistics to collect, by field id.
        """
        self._leaves = [
            leaf for place, each in enumerate(fields) for leaf in _leaves_of(each, (place,), modes)
        ]

    def add(self, rows: pa.Table) -> None:
        """Add rows, which must have exactly the columns of the file."""
        for leaf in self._leaves:
            leaf.add(rows)

    def add_files(self, entries: pa.Table) -> None:
        """Add the rows of whole files by their entries; the columns must be those of this file."""
        for leaf in self._leaves:
            leaf.add_files(EntryColumns(entries))

    def result(self, footer: pq.FileMetaData) -> dict[str, Any]:
        """Return the statistics as members of a manifest entry; maps are lists of (key, value)."""
        found: dict[str, dict[int, Any]] = {
            name: {}
            for name in (
                "column_sizes",
                "value_counts",
                "null_value_counts",
                "nan_value_counts",
                *_BOUNDS,
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
    statistics = [each for each in (chunk.statistics for chunk in chunks) if each is not None]
    if len(statistics) == len(chunks) and all(each.has_null_count for each in statistics):
        found["null_value_counts"][leaf.id] = sum(each.null_count for each in statistics)
    if leaf.nans is not None and leaf.kind.name in ("float", "double"):
        found["nan_value_counts"][leaf.id] = leaf.nans
    lower, upper = leaf.ends(statistics)
    if lower is not None:
        found["lower_bounds"][leaf.id] = lower
    if upper is not None:
        found["upper_bounds"][leaf.id] = upper


def _start(chunk: pq.ColumnChunkMetaData) -> int:
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
