# SPDX-License-Identifier: Apache-2.0
"""Sorts rows by the sort order of a table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.write.partitioned_rows import source_values
from lakeformat.rows.groups import Positions
from lakeformat.rows.take_rows import take_rows
from lakeformat.rows.value_order import positions_by_values

__all__ = ["can_sort", "order_positions", "sort_keys", "sorted_rows"]


def can_sort(order: SortOrder, schema: Schema) -> bool:
    """Return True if the order has keys, each with one existing column and a known transform."""
    return bool(order.fields) and all(_is_known(each, schema) for each in order.fields)


def sorted_rows(rows: pa.Table, order: SortOrder, schema: Schema) -> pa.Table:
    """Return the rows sorted by an order; equal rows keep their order. Check ``can_sort`` first."""
    return take_rows(rows, order_positions(rows, order, schema))


def order_positions(rows: pa.Table, order: SortOrder, schema: Schema) -> Positions:
    """Return the positions of the rows in sorted order; equal rows keep their order.

    Check ``can_sort`` first.
    """
    keys: list[pa.Array] = []
    directions: list[str] = []
    for field in order.fields:
        source = source_values(rows, schema, field.source_ids[0])
        assert source is not None
        values = parse_transform(field.transform).apply(source)
        for key, direction in sort_keys(values, field):
            keys.append(key)
            directions.append(direction)
    return positions_by_values(keys, directions)


def _is_known(field: SortField, schema: Schema) -> bool:
    is_single = len(field.source_ids) == 1 and schema.field(field.source_ids[0]) is not None
    return is_single and parse_transform(field.transform).kind is not TransformKind.UNKNOWN


def sort_keys(values: pa.Array, field: SortField) -> Iterator[tuple[pa.Array, str]]:
    """Yield the columns to sort by for one key, each with a direction.

    They are a column for nulls if there are nulls, one for NaN if the values are floats, and one
    for the values.
    """
    nulls_last = "ascending" if field.null_order == "nulls-last" else "descending"
    direction = "ascending" if field.direction == "asc" else "descending"
    if values.null_count:
        yield values.is_null().cast(pa.int8()), nulls_last
    if pa.types.is_floating(values.type):  # NaN is larger than any number
        yield pc.fill_null(pc.is_nan(values), False).cast(pa.int8()), direction
    yield _sortable(values), direction


def _sortable(values: pa.Array) -> pa.Array:
    if pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
