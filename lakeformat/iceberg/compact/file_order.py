# SPDX-License-Identifier: Apache-2.0
"""The order of rows in compacted files: the table's sort order, the caller's sort keys, or a
Z-order curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.compact.options import CompactOptions
from lakeformat.iceberg.compact.z_order import ZOrder, z_order_fields
from lakeformat.iceberg.create.transform_terms import new_sort_order
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.write.sorted_rows import can_sort, order_positions
from lakeformat.rows.groups import Positions
from lakeformat.rows.range_sort import RowOrder
from lakeformat.rows.take_rows import take_rows

__all__ = ["FileOrder", "file_order"]


@dataclass(frozen=True, slots=True)
class FileOrder:
    """The order of rows in the new files of a compaction."""

    rows: RowOrder
    with_partitions: RowOrder
    """The order for a group whose rows may be in several partitions: sorts by partition first, and
    inside of each partition by the order ``rows``.
    """
    sort_order_id: int
    """The id of the table's sort order that the new files have; 0 if the order is not one of the
    table's.
    """
    text: str
    """The order as a log prints it, such as ``id asc nulls first`` or ``zorder(a, b)``."""


@dataclass(frozen=True, slots=True)
class _KeyOrder:
    order: SortOrder
    compared: Schema
    """The columns that the keys are taken from."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.compared.column_names)

    def positions(self, rows: pa.Table) -> Positions:
        return order_positions(rows.select(self.columns), self.order, self.compared)


@dataclass(frozen=True, slots=True)
class _InnerOrder:
    """Sorts rows by the order ``outer``; rows that are equal in it are sorted by ``inner``."""

    outer: RowOrder
    inner: RowOrder

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.outer.columns, *self.inner.columns]))

    def positions(self, rows: pa.Table) -> Positions:
        inner = self.inner.positions(rows)
        outer = self.outer.positions(take_rows(rows.select(self.outer.columns), inner))
        return inner[outer]


def file_order(metadata: TableMetadata, options: CompactOptions) -> FileOrder | None:
    """Return the order of rows for a compaction; None if the strategy does not sort.

    Raise ``InvalidRequestError`` for a column that does not exist or cannot be sorted, or if
    neither the caller nor the table names an order. Raise ``UnsupportedError`` if this version
    cannot sort by the order of the table, for example because of an unknown transform.
    """
    if options.strategy == "sort":
        return _sorted(metadata, options)
    if options.strategy == "zorder":
        return _along_a_curve(metadata, options)
    return None


def _sorted(metadata: TableMetadata, options: CompactOptions) -> FileOrder:
    schema = metadata.schema
    if options.order_by is None:
        order = metadata.sort_order
        if not order.fields:
            raise InvalidRequestError(
                f"{metadata.location} has no sort order: name the columns to sort by in order_by"
            )
        if not can_sort(order, schema):
            raise UnsupportedError(
                f"this version cannot sort by the sort order of {metadata.location}, because a key "
                "has an unknown transform, several columns, or a column that the table does not "
                "have. Name the columns to sort by in order_by"
            )
    else:
        order = _of_table(metadata, new_sort_order(schema, options.order_by))
    rows = _KeyOrder(order, _compared(schema, _sources(order)))
    return _file_order(metadata, rows, order.order_id, ", ".join(_texts(schema, order)))


def _along_a_curve(metadata: TableMetadata, options: CompactOptions) -> FileOrder:
    assert options.order_by is not None
    fields = z_order_fields(metadata, options.order_by)
    compared = _compared(metadata.schema, [each.id for each in fields])
    rows = ZOrder(compared, fields, options.var_length_contribution or 8, options.max_output_size)
    names = [metadata.schema.name_of(each.id) or each.name for each in fields]
    return _file_order(metadata, rows, 0, f"zorder({', '.join(names)})")


def _file_order(metadata: TableMetadata, rows: RowOrder, order_id: int, text: str) -> FileOrder:
    keys = tuple(
        SortField(each.source_ids, each.transform, "asc", "nulls-first")
        for each in metadata.spec_of(metadata.default_spec_id).fields
        if parse_transform(each.transform).kind is not TransformKind.VOID
    )
    partitions = SortOrder(0, keys)
    # No partition columns, or with a transform that the writer refuses.
    if not can_sort(partitions, metadata.schema):
        return FileOrder(rows, rows, order_id, text)
    outer = _KeyOrder(partitions, _compared(metadata.schema, _sources(partitions)))
    return FileOrder(rows, _InnerOrder(outer, rows), order_id, text)


def _of_table(metadata: TableMetadata, order: SortOrder) -> SortOrder:
    """Return the sort order of the table that has the same keys as ``order``.

    If there is none, return ``order`` with the id 0.
    """
    for known in metadata.sort_orders:
        if known.fields == order.fields:
            return known
    return replace(order, order_id=0)


def _sources(order: SortOrder) -> list[int]:
    return [number for field in order.fields for number in field.source_ids]


def _compared(schema: Schema, ids: Iterable[int]) -> Schema:
    """Return a schema of the columns that are, or contain, the fields with these ids."""
    wanted = [*ids]
    fields = []
    for column in schema.fields:
        alone = Schema(schema.schema_id, (column,))
        if any(alone.field(each) is not None for each in wanted):
            fields.append(column)
    return Schema(schema.schema_id, tuple(fields))


def _texts(schema: Schema, order: SortOrder) -> Iterable[str]:
    for field in order.fields:
        name = schema.name_of(field.source_ids[0])
        term = name if field.transform == "identity" else f"{field.transform}({name})"
        yield f"{term} {field.direction} {field.null_order.replace('-', ' ')}"
