# SPDX-License-Identifier: Apache-2.0
"""Converts the statistics of Paimon data files to the form of Iceberg manifests.

Iceberg stores each kind of statistics as a map from column ids to values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    ListColumn,
    NumberColumn,
)
from lakeformat.paimon.metadata.referrer import naming_row
from lakeformat.types.types import DataField

__all__ = ["FileStatistics"]

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The statistics of data files that all have the same columns."""

    files: ManifestColumns
    schema: Schema
    """The Iceberg schema of the files."""
    written: Sequence[DataField]
    """The columns that the files store."""
    covered: Sequence[DataField]
    """The columns with statistics, in the order of the fields of ``value_min_values``."""

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns ``value_counts``, ``null_value_counts``, ``lower_bounds`` and
        ``upper_bounds`` of an Iceberg manifest, by name.
        """
        rows = pa.array(self.files.row_count.numbers, pa.int64())
        ids = [field.id for field in self.written if self._primitive(field) is not None]
        nulls = {
            field.id: _counts_at(self.files.value_null_counts, place)
            for place, field in self._primitives()
        }
        return {
            "value_counts": _maps(dict.fromkeys(ids, rows), len(rows), _COUNTS),
            "null_value_counts": _maps(nulls, len(rows), _COUNTS),
            "lower_bounds": self._bounds(self.files.value_min_values, -0.0),
            "upper_bounds": self._bounds(self.files.value_max_values, 0.0),
        }

    def _bounds(self, rows: BytesColumn, zero: float) -> pa.Array:
        found: dict[int, pa.Array] = {}
        if self.covered:
            with naming_row(
                len(rows),
                lambda row: self._decoded(rows.take(np.array([row]))),
                lambda row: f"_VALUE_STATS of data file {self.files.file_name.texts()[row]}",
            ):
                decoded = self._decoded(rows)
            for place, field in self._primitives():
                kind = self._primitive(field)
                assert kind is not None
                values = decoded[place].cast(to_arrow_type(kind))
                found[field.id] = single_value_bytes(_comparable(values, zero))
        return _maps(found, len(rows), _BOUNDS)

    def _decoded(self, rows: BytesColumn) -> Mapping[int, pa.Array]:
        framed = FramedRows(rows.to_arrow(), [field.type for field in self.covered])
        return {place: framed.column(place) for place, _ in self._primitives()}

    def _primitives(self) -> list[tuple[int, DataField]]:
        """Return each published column that is not nested, with its index in ``covered``.

        Only these columns have bounds and null counts.
        """
        return [
            (place, field)
            for place, field in enumerate(self.covered)
            if self._primitive(field) is not None
        ]

    def _primitive(self, field: DataField) -> PrimitiveType | None:
        """Return the type of a published column; None if it is nested or not published."""
        found = self.schema.field(field.id)
        if found is None or not isinstance(found.type, PrimitiveType):
            return None
        return found.type


def _comparable(values: pa.Array, zero: float) -> pa.Array:
    """Return bounds in Iceberg's form: NaN becomes null, and 0.0 or -0.0 becomes ``zero``.

    A lower bound of zero must be -0.0, and an upper bound 0.0, so that both zeros are within the
    bounds.
    """
    if not pa.types.is_floating(values.type):
        return values
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return pc.if_else(pc.equal(values, 0), pa.scalar(zero, values.type), values)


def _counts_at(lists: ListColumn, place: int) -> pa.Array:
    """Return the number at position ``place`` of each list; null for a shorter list."""
    items = lists.items
    assert isinstance(items, NumberColumn)
    is_there = lists.counts > place
    if lists.present is not None:
        is_there = is_there & lists.present
    if not is_there.any():
        return pa.nulls(len(lists), pa.int64())
    rows = np.where(is_there, lists.starts + place, 0)
    if items.present is not None:
        is_there = is_there & items.present[rows]
    return pa.array(items.numbers[rows], pa.int64(), mask=~is_there)


def _maps(columns: dict[int, pa.Array], rows: int, kind: pa.DataType) -> pa.Array:
    """Return one map for each row, from the id of a column to its value; null values are left out.
    Without columns each map is null.
    """
    if not columns or not rows:
        return pa.nulls(rows, kind)
    values = pa.concat_arrays(list(columns.values()))
    by_row = np.arange(len(values)).reshape(len(columns), rows).T.ravel()
    is_known = pc.is_valid(values).to_numpy(zero_copy_only=False)[by_row]
    keys = np.tile(np.array([*columns], np.int32), rows)[is_known]
    sizes = is_known.reshape(rows, len(columns)).sum(axis=1)
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    items = values.take(pa.array(by_row[is_known]))
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys), items)
