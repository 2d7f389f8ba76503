# SPDX-License-Identifier: Apache-2.0
"""Finds files with overlapping key ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.key_order import orderable
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.types import DataType

__all__ = ["first_overlap"]

_ROW = "_ROW"


def first_overlap(
    columns: ManifestColumns, places: Positions, schema: TableSchema
) -> tuple[int, int] | None:
    """Return the indexes of two entries with overlapping key ranges in the same place, or None.

    ``places`` has a number for the place of each entry, for example for its bucket and level; only
    files of the same place are compared.
    """
    if len(columns) < 2:
        return None
    types = [field.type for field in schema.key_fields]
    first, last = _ranks(columns, types)
    order = np.lexsort((first, places))
    same_place = np.diff(places[order]) == 0
    overlaps = same_place & (last[order][:-1] >= first[order][1:])
    found = np.flatnonzero(overlaps)
    return (int(order[found[0]]), int(order[found[0] + 1])) if len(found) else None


def _ranks(
    columns: ManifestColumns, types: Sequence[DataType]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the smallest and largest key of each file as numbers that compare like the keys."""
    rows = pa.concat_arrays([columns.min_key.to_arrow(), columns.max_key.to_arrow()])
    framed = FramedRows(rows, types)
    keys = {
        str(position): orderable(pa.chunked_array([framed.column(position)]))
        for position in range(len(types))
    }
    table = pa.table({**keys, _ROW: np.arange(len(rows))})
    by = [(name, "ascending", "at_start") for name in keys]
    order = pc.sort_indices(table, sort_keys=by).to_numpy().astype(np.int64)
    starts = np.zeros(len(rows), np.bool_)
    for column in keys.values():
        ordered = column.take(pa.array(order)).combine_chunks()
        differs = pc.not_equal(ordered.slice(1), ordered.slice(0, max(len(ordered) - 1, 0)))
        starts[1:] |= pc.fill_null(differs, True).to_numpy(zero_copy_only=False)
    ranks = np.zeros(len(rows), np.int64)
    ranks[order] = np.cumsum(starts)
    half = len(columns)
    return ranks[:half], ranks[half:]
