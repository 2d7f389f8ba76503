# SPDX-License-Identifier: Apache-2.0
"""The order by which a sort compaction writes rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.compact.sorting.hilbert import hilbert
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.curves import curve_positions, ordered_bytes, z_order
from lakeformat.rows.groups import Positions
from lakeformat.rows.value_order import positions_by_values
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import require_list
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["RowOrder", "row_order"]

ORDER_STRATEGIES = ("order", "zorder", "hilbert")

_NOT_ORDERED = (TypeName.VARIANT, TypeName.BLOB, TypeName.GEOMETRY, TypeName.GEOGRAPHY)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The columns by which rows are sorted: one after the other, or along a space-filling curve."""

    columns: tuple[str, ...]
    strategy: str
    """``order``, ``zorder`` or ``hilbert``."""
    text_bytes: int
    """The number of leading bytes of a text that determine its place on a curve."""

    def positions(self, rows: pa.Table) -> Positions:
        """Return the indexes of the rows in this order; nulls count as the smallest values, and
        equal rows keep their order.
        """
        columns = [rows.column(name).combine_chunks() for name in self.columns]
        if self.strategy == "order":
            return _by_values(columns)
        ordered = [ordered_bytes(column, self.text_bytes) for column in columns]
        return curve_positions(z_order(ordered) if self.strategy == "zorder" else hilbert(ordered))


def row_order(schema: TableSchema, order_by: Sequence[str], strategy: str) -> RowOrder:
    """Return the order of rows by the columns ``order_by``.

    Raise InvalidRequestError for an unknown strategy or column, and for a column whose values have
    no order.
    """
    if strategy not in ORDER_STRATEGIES:
        raise InvalidRequestError(
            f"order_strategy must be one of {', '.join(ORDER_STRATEGIES)}, got {strategy!r}"
        )
    if not isinstance(order_by, str):
        require_list("order_by", order_by, "['id', 'day']")
    columns = (order_by,) if isinstance(order_by, str) else tuple(order_by)
    if not columns:
        raise InvalidRequestError(
            "order_by names no column: give the columns that queries filter by"
        )
    fields = {field.name: field for field in schema.fields}
    for name in columns:
        if name not in fields:
            raise InvalidRequestError(
                f"order_by names {name!r}, which is not a column; the columns are "
                f"{', '.join(fields)}"
                f"{closest(name, fields)}"
            )
        if columns.count(name) > 1:
            raise InvalidRequestError(f"order_by names {name!r} twice; name it once")
        _require_comparable(fields[name])
    return RowOrder(columns, strategy, schema.table_options.zorder_var_length_contribution)


def _require_comparable(field: DataField) -> None:
    if not isinstance(field.type, AtomicType) or field.type.name in _NOT_ORDERED:
        spelled = type_to_json(field.type)
        shown = spelled if isinstance(spelled, str) else spelled["type"]
        raise InvalidRequestError(
            f"order_by names {field.name!r}, and values of type {shown} have no order: name "
            "columns of numbers, texts or times"
        )


def _by_values(columns: Sequence[pa.Array]) -> Positions:
    """Return the positions of the rows in the order of ``columns``, the first column first.

    Nulls come before all values of a column.
    """
    keys = [key for each in columns for key in (pc.is_valid(each).cast(pa.int8()), each)]
    return positions_by_values(keys, ["ascending"] * len(keys))
